"""Exports torchvision's CNNs to ONNX and compares Ridgeline's import with PyTorch.
usage: onnx_zoo_test.py FOLDER_OF_TOOLS [--models A,B | --all] [--exports script,training,dynamo]
       [--backend NAME] [--results FILE] [--table FILE]

For each network and each way to export it:
  f32     outputs in evaluation on a backend, within 1e-4 of PyTorch's, relative to the largest one
  f64     the same on the reference in float64, within 1e-10; where the exporter folded batch norms into weights, which it
          does in float32, the outputs are compared with onnxruntime's where that is installed, within 1e-4
  names   parameters of a file that kept its batch norms have PyTorch's names, shapes and values
  counts  parameters and multiply-accumulates, counted independently with hooks
  plan    the network of the zoo with the same name has the same plan: in evaluation, and in training where the export
          kept the training's ops
  again   what `ridgeline export` makes of the file, with and without folded norms, passes onnx.checker and gives our
          outputs in onnxruntime within 1e-5, where these are installed; read again, it has the same plan and weights

Names, counts, plans and `again` are for the export `training` alone, which must be asked for. Weights and running
statistics are random, so that nothing is multiplied by one or added to zero. CTest runs a small set with the PyTorch that
is there; --all takes all 68. `script` and `training` are the TorchScript exporter in evaluation and in training mode,
`dynamo` is the exporter of PyTorch 2. Results are kept line by line in --results: a call that was interrupted goes on
where it ended, and the table has all of the file's lines."""

import argparse
import contextlib
import importlib.metadata
import io
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np

try:
    import torch
    import torchvision
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)  # CTest's SKIP_RETURN_CODE

FEW = ("resnet18", "squeezenet1_1", "mobilenet_v3_small", "shufflenet_v2_x0_5", "convnext_tiny", "googlenet",
       "efficientnet_b0")
FAMILIES = ("alexnet", "convnext", "densenet", "efficientnet", "googlenet", "inception", "mnasnet", "mobilenet", "regnet",
            "resnet", "resnext", "shufflenet", "squeezenet", "vgg", "wide_resnet")
# As small as the network and its exporter allow: adaptive pools must divide.
SIZES = {"alexnet": 224, "vgg": 224, "inception": 299}
BATCH = 2
ROW = "{:<19} {:<9} {:>8} {:>8} {:>8} {:>8} {:>11} {:>14} {:<6} {:<10} {:<10} {}"
F32, F64, AGAIN = 1e-4, 1e-10, 1e-5
KINDS = ("script", "dynamo", "training")
SHOWN = {"script": ("f32", "runtime"), "dynamo": ("f32", "runtime"),
         "training": ("f32", "f64", "names", "evaluation", "training", "again")}


def all_models():
    """The names of torchvision's CNNs for classification."""
    names = []
    for name in sorted(dir(torchvision.models)):
        made = getattr(torchvision.models, name)
        if callable(made) and name.islower() and name.startswith(FAMILIES):
            names.append(name)
    return names


def size_of(name):
    return next((size for start, size in SIZES.items() if name.startswith(start)), 64)


def make_model(name):
    """A network with random weights and statistics, and nothing that drops at random in training."""
    torch.manual_seed(1)
    options = {}
    if name.startswith(("googlenet", "inception")):
        options = {"init_weights": False}
    model = getattr(torchvision.models, name)(weights=None, **options)
    for module in model.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.weight.data.uniform_(0.8, 1.2)
            module.bias.data.uniform_(-0.1, 0.1)
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.8, 1.2)
        if isinstance(module, torch.nn.LayerNorm):
            module.weight.data.uniform_(0.8, 1.2)
            module.bias.data.uniform_(-0.1, 0.1)
        if type(module).__name__ == "CNBlock":
            module.layer_scale.data.uniform_(0.1, 1.0)
    return model.eval()


def export(model, kind, images, path):
    """Writes the model; its batch stays free."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        if kind == "dynamo":
            batch = torch.export.Dim("batch", min=1, max=1024)
            torch.onnx.export(model, (images,), str(path), dynamo=True, dynamic_shapes=({0: batch},), verbose=False)
            return
        training = kind == "training"
        modes = torch.onnx.TrainingMode
        model.train(training)
        options = {"dynamo": False} if int(torch.__version__.split(".")[0]) >= 2 else {}
        torch.onnx.export(model, (images,), str(path), opset_version=13 if kind == "script" else 15,
                          training=modes.TRAINING if training else modes.EVAL, do_constant_folding=not training,
                          input_names=["input"], output_names=["output"],
                          dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}}, **options)
        model.eval()


def counts(model, size):
    """Parameters that lead to an output in training, and multiply-accumulates of one image."""
    used, macs = set(), [0]

    def convolution(module, inputs, output):
        macs[0] += output[0].numel() * module.weight[0].numel()
        used.update(id(value) for value in module.parameters(recurse=False))

    def linear(module, inputs, output):
        macs[0] += output[0].numel() * module.weight.shape[1]
        used.update(id(value) for value in module.parameters(recurse=False))

    def other(module, inputs, output):
        used.update(id(value) for value in module.parameters(recurse=False))

    hooks = []
    for module in model.modules():
        kinds = {torch.nn.Conv2d: convolution, torch.nn.Linear: linear}
        hooks.append(module.register_forward_hook(kinds.get(type(module), other)))
    with torch.no_grad():
        model.train()(torch.zeros(BATCH, 3, size, size))
    model.eval()
    for hook in hooks:
        hook.remove()
    return sum(value.numel() for value in model.parameters() if id(value) in used), macs[0]


class Tool:
    def __init__(self, folder, backend):
        self.backend = backend
        self.program = pathlib.Path(folder) / "onnx_parity"
        self.ridgeline = pathlib.Path(folder).parent / "ridgeline"

    def __call__(self, *arguments):
        done = subprocess.run([str(self.program), *map(str, arguments)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip()[:300])
        return done.stdout

    def logits(self, model, images, backend, folder):
        """The network's outputs for images."""
        images.double().numpy().tofile(folder / "input.f64")
        self("run", model, images.shape[2], images.shape[0], backend, folder / "input.f64", folder / "output.f64")
        return np.fromfile(folder / "output.f64").reshape(images.shape[0], -1)

    def export(self, model, path, size, *options):
        """The network as our own ONNX file."""
        done = subprocess.run([str(self.ridgeline), "export", str(model), "--image", f"{size}x{size}", "--out", str(path),
                               *options], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip()[:300])

    def plan(self, model, size, kind):
        return self("plan", model, size, BATCH, kind)

    def counts(self, model, size):
        """Parameters and forward multiply-accumulates of one image."""
        done = subprocess.run([str(self.ridgeline), "describe", str(model), "--image", f"3x{size}x{size}", "--batch",
                               str(BATCH), "--json"], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip()[:300])
        told = json.loads(done.stdout)
        return told["parameters"], told["forward_macs"] // BATCH


def difference(ours, theirs):
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def runtime_logits(path, images):
    """onnxruntime's outputs; nothing where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: images.numpy()})[0]


def file_weights(tool, path, folder):
    """The file's parameters and running statistics by name."""
    listed = json.loads(tool("weights", path, folder / "weights.f32"))
    numbers, begin, arrays = np.fromfile(folder / "weights.f32", dtype=np.float32), 0, {}
    for entry in listed:
        count = int(np.prod(entry["shape"]))
        arrays[entry["name"]] = numbers[begin:begin + count].reshape(entry["shape"])
        begin += count
    return arrays


def same_arrays(one, other):
    """Names and numbers; a linear layer over the channels of an image comes back as a 1x1 convolution, with two axes more."""
    return one.keys() == other.keys() and all(
        np.array_equal(one[name].ravel(), other[name].ravel()) for name in one)


def compare_names(model, arrays):
    """What is wrong with a file's parameters, in words; empty: nothing."""
    state = {name: value.numpy() for name, value in model.state_dict().items()
             if not name.endswith("num_batches_tracked")}
    missing = [name for name in state if name not in arrays]
    unknown = [name for name in arrays if name not in state]
    other = [name for name in state if name in arrays and not (
        state[name].shape == arrays[name].shape and np.array_equal(state[name], arrays[name]))]
    words = [f"{what} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")
             for what, names in (("missing", missing), ("unknown", unknown), ("other", other)) if names]
    return "; ".join(words)


def check(tool, name, kind, folder):
    """One network exported in one way: a row of the table, with what failed."""
    size, failed = size_of(name), []
    row = {"model": name, "export": kind, "image": size, "torch": torch.__version__.split("+")[0]}
    model = make_model(name)
    images = torch.randn(BATCH, 3, size, size, generator=torch.Generator().manual_seed(2))
    path = folder / f"{name}.{kind}.onnx"
    export(model, kind, images, path)
    with torch.no_grad():
        expected32, expected64 = model(images).numpy(), model.double()(images.double()).numpy()
    model.float()
    row["f32"] = difference(tool.logits(path, images, tool.backend, folder), expected32)
    ours = tool.logits(path, images, "f64", folder)
    row["f64"] = difference(ours, expected64)
    runtime = runtime_logits(path, images) if kind != "training" else None
    row["runtime"] = difference(ours, runtime) if runtime is not None else None
    if not row["f32"] <= F32:
        failed.append("f32")
    if runtime is not None and not row["runtime"] <= F32:
        failed.append("runtime")
    if kind == "training":
        if not row["f64"] <= F64:
            failed.append("f64")
        wrong = compare_names(model, file_weights(tool, path, folder))
        row["names"] = wrong or "same"
        if wrong:
            failed.append("names")
        parameters, macs = counts(model, size)
        row["parameters"], row["macs"] = parameters, macs
        if tool.counts(path, size) != (parameters, macs):
            failed.append("counts")
    failed += compare_plans(tool, name, kind, size, path, row)
    if kind == "training":
        row["again"], wrong = check_again(tool, path, images, ours, folder)
        failed += wrong
    path.unlink()
    for extra in folder.glob(f"{name}.{kind}.onnx*"):
        extra.unlink()
    row["failed"] = failed
    return row


def check_again(tool, path, images, ours, folder):
    """Our own export of a file: how far onnxruntime's outputs are from ours, and what failed."""
    worst, failed, size = None, [], images.shape[2]
    for options in ([], ["--fold-norms"]):
        again = folder / "again.onnx"
        tool.export(path, again, size, *options)
        with contextlib.suppress(ImportError):
            import onnx
            onnx.checker.check_model(str(again))
        runtime = runtime_logits(again, images)
        if runtime is not None:
            worst = max(worst or 0.0, difference(runtime, ours))
        if not options and not (
                all(tool.plan(again, size, phase) == tool.plan(path, size, phase) for phase in ("evaluation", "training"))
                and same_arrays(file_weights(tool, again, folder), file_weights(tool, path, folder))):
            failed.append("again")
        for extra in folder.glob("again.onnx*"):
            extra.unlink()
    if worst is not None and not worst <= AGAIN:
        failed.append("again")
    return worst, failed


def compare_plans(tool, name, kind, size, path, row):
    """The zoo's network and the file's give the same plan."""
    if kind != "training":
        return []
    failed = []
    for phase in ("evaluation", "training"):
        try:
            same = tool.plan(name, size, phase) == tool.plan(path, size, phase)
        except RuntimeError as error:
            row[phase] = str(error)[:60]
            continue
        row[phase] = "same plan" if same else "other plan"
        if not same:
            failed.append(phase)
    return failed


def number(value):
    return "-" if value is None else f"{value:.1e}" if isinstance(value, float) else f"{value:,}"


def text_of(row):
    if "error" in row:
        return f"{row['model']:<19} {row['export']:<9} FAILED: {row['error']}"
    return ROW.format(row["model"], row["export"], *(number(row.get(key)) for key in ("f32", "f64", "runtime", "again")),
                      number(row.get("parameters")), number(row.get("macs")), row.get("names", "-")[:40],
                      row.get("evaluation", "-")[:40], row.get("training", "-")[:40], " ".join(row["failed"]))


def versions():
    """Of what made and what read the files."""
    names = ["torch", "torchvision", "onnx", "onnxscript", "onnxruntime"]
    found = []
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name).split('+')[0]}")
    return ", ".join(found)


def table(rows):
    """A row for each network, with the exports beside each other."""
    kinds = [kind for kind in KINDS if any(row["export"] == kind for row in rows)]
    columns = [(kind, key) for kind in kinds for key in SHOWN[kind]]
    plans = {"evaluation": "evaluation plan", "training": "training plan"}
    heads = ["network", "image", "parameters", "MACs", *(plans.get(key, f"{kind} {key}") for kind, key in columns), "failed"]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 2) + "---|"]
    for name in sorted({row["model"] for row in rows}):
        of = {row["export"]: row for row in rows if row["model"] == name}
        cells = [name, number(size_of(name)), *(number(of.get("training", {}).get(key)) for key in ("parameters", "macs"))]
        for kind, key in columns:
            value = of.get(kind, {}).get(key)
            cells.append(value if isinstance(value, str) else number(value))
        wrong = [f"{kind}: {row.get('error') or ' '.join(row['failed'])}" for kind, row in of.items()
                 if row.get("error") or row["failed"]]
        lines.append("| " + " | ".join([*cells, "; ".join(wrong) or "-"]) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools")
    parser.add_argument("--models")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--exports")
    parser.add_argument("--backend", default="reference")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--table", type=pathlib.Path)
    arguments = parser.parse_args()
    new = int(torch.__version__.split(".")[0]) >= 2
    names = arguments.models.split(",") if arguments.models else all_models() if arguments.all else FEW
    kinds = arguments.exports.split(",") if arguments.exports else ["script"] + (["dynamo"] if new else [])
    tool, rows = Tool(arguments.tools, arguments.backend), []
    if arguments.results and arguments.results.exists():
        rows = [json.loads(line) for line in arguments.results.read_text().splitlines()]
    done = {(row["model"], row["export"]) for row in rows}
    print(ROW.format("network", "export", "f32", "f64", "runtime", "again", "parameters", "MACs", "names", "evaluation",
                     "training", "failed"))
    with tempfile.TemporaryDirectory() as folder:
        for name, kind in itertools.product(names, kinds):
            if (name, kind) in done:
                continue
            try:
                row = check(tool, name, kind, pathlib.Path(folder))
            except Exception as error:  # one network must not hide the others
                row = {"model": name, "export": kind, "error": str(error)[:300], "failed": ["all"]}
            rows.append(row)
            print(text_of(row), flush=True)
            if arguments.results:
                with arguments.results.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    if arguments.table:
        arguments.table.write_text(versions() + "\n\n" + table(rows))
    wrong = sum(bool(row["failed"]) for row in rows)
    print(f"{versions()}: {len(rows)} exports, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
