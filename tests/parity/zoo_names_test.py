"""Compares the names, shapes and order of every zoo model's parameters and running statistics with
torchvision's state dicts. usage: zoo_names_test.py FOLDER_OF_TOOLS"""

import json
import pathlib
import subprocess
import sys

try:
    import torchvision
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)  # CTest's SKIP_RETURN_CODE

OUR_OWN = {"mlp", "mnist_cnn"}


def difference(ours, theirs):
    """The first place where two lists differ, or nothing."""
    for index in range(max(len(ours), len(theirs))):
        pair = [entries[index] if index < len(entries) else "nothing" for entries in (ours, theirs)]
        if pair[0] != pair[1]:
            return f"entry {index}: {pair[0]} here, {pair[1]} in torchvision"
    return None


def main():
    output = subprocess.run([pathlib.Path(sys.argv[1]) / "zoo_parity", "names"], check=True, capture_output=True)
    models = json.loads(output.stdout)
    failed = 0
    for model in sorted(set(models) - OUR_OWN):
        ours = [(entry["name"], entry["shape"]) for entry in models[model]]
        state = getattr(torchvision.models, model)(weights=None).state_dict()
        theirs = [(name, list(value.shape)) for name, value in state.items()
                  if not name.endswith("num_batches_tracked")]
        where = difference(ours, theirs)
        failed += where is not None
        print(f"{model:<16}{len(ours):>6} entries  {'the same' if where is None else 'FAILED: ' + where}")
    assert len(models) - len(OUR_OWN) >= 12, "models are missing"
    print(f"torchvision {torchvision.__version__}: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
