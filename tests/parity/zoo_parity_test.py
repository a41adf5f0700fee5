"""Holds the zoo against torchvision on the same weights and batches.
usage: zoo_parity_test.py FOLDER_OF_TOOLS [--images 64,224] [--models A,B] [--backends A,B]

The yardstick is float64, where rounding plays no part:
  f64  Ridgeline's reference in float64 against PyTorch in float64: the losses, every parameter's gradient and
       the running statistics of three steps, within 1e-8.
  f32  what a backend in float32 errs against float64 in its first step, beside what PyTorch in float32 errs:
       at most three times as much. Outputs of inference within 1e-4.

Errors are norms: |x - exact| / |exact|. A gradient's is taken relative to at least 1e-6 of the norm of all gradients
together, because some are zero in truth (a bias before a batch norm), and a running mean's relative to at least the
deviations of its channels, because it too may be zero. Gradients and statistics are judged by the worst parameter. Which
one rounding hits hardest, and whether it tips a ReLU over, is chance and differs between any two programs and batches: the
same PyTorch errs by 4e-6 on one batch of resnet18 at 224x224 and by 1e-2 on the next. So PyTorch's own error is the largest
of its two layouts on three batches. A loss is one number, whose error may be zero by luck: PyTorch is granted one unit in the
last place.
CTest runs it on images of 64x64; 224x224 takes some minutes more."""

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

import zoo_torch

torch, torchvision = zoo_torch.torch, zoo_torch.torchvision
MODELS = ("resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1", "densenet121")
SMALLEST = {"inception_v3": 299}  # the auxiliary head takes no smaller image
BACKENDS = ("native", "onednn")
STEPS = 3
EXACT = 1e-8
TIMES = 3.0
INFERENCE = 1e-4
SMALLEST_GRADIENT = 1e-6  # of the norm of all gradients
UNIT = 2.0**-23


def error_of(value, exact, floor=0.0):
    """|value - exact| relative to |exact|."""
    distance = np.linalg.norm((np.asarray(value, dtype=np.float64) - exact).ravel())
    norm = max(np.linalg.norm(np.asarray(exact).ravel()), floor)
    return distance / norm if norm > 0 else (0.0 if distance == 0 else np.inf)


class Entries:
    """Numbers of several steps, each a row of named arrays, read from one file."""

    def __init__(self, path, entries, dtype):
        self.numbers = np.fromfile(path, dtype=dtype)
        self.shapes = {entry["name"]: entry["shape"] for entry in entries}
        self.step_size = sum(int(np.prod(shape)) for shape in self.shapes.values())
        assert self.step_size and len(self.numbers) % self.step_size == 0, f"{path} has a wrong size"

    def step(self, index):
        begin, arrays = index * self.step_size, {}
        for name, shape in self.shapes.items():
            count = int(np.prod(shape))
            arrays[name] = self.numbers[begin:begin + count].reshape(shape)
            begin += count
        return arrays


def torch_model(manifest, folder, dtype):
    weights = Entries(folder / "weights.f32", manifest["parameters"], np.float32).step(0)
    return zoo_torch.loaded(manifest["model"], weights).to(dtype)


def torch_run(manifest, folder, dtype, steps, first=0, channels_last=False, device="cpu", narrow=None):
    """Logits of inference; the loss, gradients and running statistics of each step, from batch `first` on, around
    the end. With `narrow`, under autocast to that type."""
    model = torch_model(manifest, folder, dtype).to(device)
    autocast = torch.autocast("cuda", narrow) if narrow else contextlib.nullcontext()
    scale = 1024.0 if narrow == torch.float16 else 1.0
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
    size, batch = manifest["image"], manifest["batch"]
    pixels = np.fromfile(folder / "images.u8", dtype=np.uint8).reshape(-1, 3, size, size)
    images = torch.from_numpy((pixels / 255.0 - manifest["mean"]) / manifest["deviation"]).to(dtype).to(device)
    if channels_last:
        images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.from_numpy(np.fromfile(folder / "labels.i32", dtype=np.int32)).long().to(device)
    model.eval()
    with torch.no_grad(), autocast:
        logits = model(images[:batch]).double().cpu().numpy().ravel()
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=manifest["learning_rate"], momentum=manifest["momentum"])
    for step in range(first, first + steps):
        begin = step % manifest["steps"] * batch
        rows = slice(begin, begin + batch)
        optimizer.zero_grad()
        with autocast:
            loss = zoo_torch.loss_of(manifest["model"], model(images[rows]), labels[rows])
        (loss * scale).backward()
        for value in model.parameters():
            value.grad /= scale
        optimizer.step()
        yield {"logits": logits, "loss": loss.item(),
               "gradients": {name: value.grad.contiguous().cpu().numpy() for name, value in model.named_parameters()},
               "statistics": {name: value.cpu().numpy() for name, value in model.named_buffers()
                              if not name.endswith("num_batches_tracked")}}


def our_steps(manifest, folder, run):
    result = manifest["runs"][run]
    trained = [entry for entry in manifest["parameters"] if entry["trained"]]
    kept = [entry for entry in manifest["parameters"] if not entry["trained"]]
    gradients = Entries(folder / f"{run}.gradients", trained, np.float64)
    statistics = Entries(folder / f"{run}.statistics", kept, np.float64) if kept else None
    for step, loss in enumerate(result["losses"]):
        yield {"logits": np.array(result["logits"]), "loss": loss, "gradients": gradients.step(step),
               "statistics": statistics.step(step) if statistics else {}}


def deviation_of(name, statistics):
    """For a running mean, the norm of its channels' deviations; 0 for a variance."""
    if not name.endswith(".running_mean"):
        return 0.0
    return np.sqrt(statistics[name[:-len("running_mean")] + "running_var"].sum())


def errors(step, exact):
    """How far a step is from another; gradients and statistics by their worst entry."""
    norm = np.sqrt(sum(np.linalg.norm(g.ravel())**2 for g in exact["gradients"].values()))
    floor = SMALLEST_GRADIENT * norm
    assert step["gradients"].keys() == exact["gradients"].keys() and step["statistics"].keys() == exact["statistics"].keys()
    gradients = {name: error_of(step["gradients"][name], g, floor) for name, g in exact["gradients"].items()}
    statistics = {name: error_of(step["statistics"][name], s, deviation_of(name, exact["statistics"]))
                  for name, s in exact["statistics"].items()}
    return {"loss": abs(step["loss"] - exact["loss"]) / abs(exact["loss"]), "gradients": max(gradients.values()),
            "worst gradient": max(gradients, key=gradients.get),
            "statistics": max(statistics.values(), default=0.0), "logits": error_of(step["logits"], exact["logits"])}


ROW = "{:<14} {:>5} {:<16} {:>10} {:>12} {:>12} {:>12}  {}"


class Report:
    def __init__(self):
        self.compared, self.failed = 0, 0
        print(ROW.format("model", "image", "who", "loss", "gradients", "statistics", "inference", "worst gradient"))

    def row(self, manifest, who, found, limits):
        """Prints errors and marks those above their limits."""
        bad = [key for key, limit in limits.items() if not found[key] <= limit]
        self.compared += len(limits)
        self.failed += len(bad)
        cells = [f"{found[key]:.1e}" + ("!" if key in bad else "") for key in ("loss", "gradients", "statistics", "logits")]
        print(ROW.format(manifest["model"], manifest["image"], who, *cells, found["worst gradient"]), flush=True)
        for key in bad:
            print(f"  FAILED: {key} of {who}: {found[key]:.3e}, allowed {limits[key]:.3e}")


def larger(one, other):
    """The larger errors of both."""
    worst = one if one["gradients"] >= other["gradients"] else other
    return {key: max(one[key], other[key]) if key != "worst gradient" else worst[key] for key in one}


def peer_errors(manifest, folder):
    """What PyTorch errs in float32: the largest of its two layouts on each step's batch, from the initial weights."""
    found = None
    for first in range(STEPS):
        exact = next(torch_run(manifest, folder, torch.float64, 1, first))
        for channels_last in (False, True):
            error = errors(next(torch_run(manifest, folder, torch.float32, 1, first, channels_last)), exact)
            found = error if found is None else larger(found, error)
    return found


def compare(tool, folder, report, model, image, batch, backends):
    subprocess.run([tool, model, str(image), str(batch), str(STEPS), folder, "f64", *backends], check=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    exact_first, worst = None, None
    for ours, exact in zip(our_steps(manifest, folder, "f64"), torch_run(manifest, folder, torch.float64, STEPS)):
        found = errors(ours, exact)
        if exact_first is None:
            exact_first = {key: value if not isinstance(value, dict) else {n: a.copy() for n, a in value.items()}
                           for key, value in exact.items()}
            worst = found
        worst = larger(worst, found)
    report.row(manifest, "reference f64", worst, dict.fromkeys(("loss", "gradients", "statistics", "logits"), EXACT))
    peer = peer_errors(manifest, folder)
    report.row(manifest, "PyTorch f32", peer, {})
    limits = {"loss": TIMES * max(peer["loss"], UNIT), "gradients": TIMES * peer["gradients"],
              "statistics": TIMES * peer["statistics"], "logits": INFERENCE}
    for backend in backends:
        report.row(manifest, f"{backend} f32", errors(next(our_steps(manifest, folder, backend)), exact_first), limits)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools")
    parser.add_argument("--images", default="64", help="64, 224 or both")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--backends", default=",".join(BACKENDS))
    options = parser.parse_args()
    start = time.monotonic()
    tool = pathlib.Path(options.tools) / "zoo_parity"
    report = Report()
    for image in map(int, options.images.split(",")):
        batch = 4 if image < 128 else 2
        for model in options.models.split(","):
            with tempfile.TemporaryDirectory() as folder:
                compare(tool, pathlib.Path(folder), report, model, image, batch, options.backends.split(","))
    print(f"PyTorch {torch.__version__}, torchvision {torchvision.__version__}; float64 within {EXACT:.0e} over {STEPS} steps; "
          f"float32 at most {TIMES:g} times PyTorch's own error; {time.monotonic() - start:.0f} s")
    print(f"{report.compared - report.failed} passed, {report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
