"""Executes examples/roofline-of-my-network.ipynb, with nbclient where that is installed, else cell by cell."""

import ast
import json
import pathlib
import sys

from support import SKIPPED

try:
    import torch  # noqa: F401
except ImportError:
    print("PyTorch is not installed")
    sys.exit(SKIPPED)

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "examples" / "roofline-of-my-network.ipynb"


def pictures_by_nbclient():
    """The SVG pictures that a notebook's cells show."""
    import nbclient
    import nbformat
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=280, kernel_name="python3").execute()
    return [output["data"]["image/svg+xml"] for cell in notebook.cells if cell.cell_type == "code"
            for output in cell.outputs if "image/svg+xml" in output.get("data", {})]


def pictures_without():
    """The same by running the cells in this process."""
    names, pictures = {}, []
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "cell", "exec"), names)  # pylint: disable=exec-used
        if last is None:
            continue
        shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # pylint: disable=eval-used
        if hasattr(shown, "_repr_svg_"):
            pictures.append(shown._repr_svg_())
    return pictures


def main():
    try:
        import nbclient  # noqa: F401
        pictures = pictures_by_nbclient()
    except ImportError:
        pictures = pictures_without()
    drawn = [picture for picture in pictures if "FLOP" in picture]
    print(f"{len(pictures)} pictures, {len(drawn)} rooflines")
    return 0 if drawn else 1


if __name__ == "__main__":
    sys.exit(main())
