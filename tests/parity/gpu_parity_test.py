"""Holds the zoo on a GPU against PyTorch on the same GPU, from the same weights and batches.
usage: gpu_parity_test.py FOLDER_OF_TOOLS [--images 64,224] [--models A,B] [--backends cuda,cudnn] [--precisions fp32,...]

The yardstick is PyTorch in float64 on the GPU. What a backend errs against it in a precision is compared with what PyTorch errs
in that precision (float32 with or without TF32, or autocast), as zoo_parity_test.py tells: the first loss, the first gradients,
the running statistics and the outputs of inference, and the losses of five steps, at most three times as much. PyTorch's own
error is the largest of three batches, or of three such steps that begin with another batch."""

import argparse
import pathlib
import json
import subprocess
import sys
import tempfile
import time

import zoo_parity_test as zoo

torch = zoo.torch
PRECISIONS = {"fp32": (None, 2.0**-23), "tf32": (None, 2.0**-10), "bf16": (torch.bfloat16, 2.0**-8), "fp16": (torch.float16, 2.0**-11)}
STEPS = 5
BATCHES = 3


def torch_steps(manifest, folder, precision, steps, first=0):
    narrow = PRECISIONS[precision][0]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    return zoo.torch_run(manifest, folder, torch.float32, steps, first, True, "cuda", narrow)


def loss_error(losses, exact):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, exact))


def peer_errors(manifest, folder, precision, exact):
    found = None
    for first in range(BATCHES):
        error = zoo.errors(next(torch_steps(manifest, folder, precision, 1, first)), exact["first"][first])
        found = error if found is None else zoo.larger(found, error)
    found["five losses"] = max(loss_error([step["loss"] for step in torch_steps(manifest, folder, precision, STEPS, first)],
                                          exact["losses"][first]) for first in range(BATCHES))
    return found


def compare(tool, folder, report, model, image, batch, backends, precisions):
    runs = [f"{backend}:{precision}:{STEPS}" for precision in precisions for backend in backends]
    subprocess.run([tool, model, str(image), str(batch), str(STEPS), folder, *runs], check=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    double = lambda steps, first=0: zoo.torch_run(manifest, folder, torch.float64, steps, first, False, "cuda")
    exact = {"first": [next(double(1, first)) for first in range(BATCHES)],
             "losses": [[step["loss"] for step in double(STEPS, first)] for first in range(BATCHES)]}
    for precision in precisions:
        unit = PRECISIONS[precision][1]
        peer = peer_errors(manifest, folder, precision, exact)
        report.row(manifest, f"PyTorch {precision}", peer, {})
        limits = {key: zoo.TIMES * max(peer[key], unit) for key in ("loss", "gradients", "statistics", "logits", "five losses")}
        for backend in backends:
            run = f"{backend}:{precision}:{STEPS}"
            found = zoo.errors(next(zoo.our_steps(manifest, folder, run)), exact["first"][0])
            found["five losses"] = loss_error(manifest["runs"][run]["losses"], exact["losses"][0])
            report.row(manifest, f"{backend} {precision}", found, limits)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tools")
    parser.add_argument("--images", default="64", help="64, 224 or both")
    parser.add_argument("--models", default=",".join(zoo.MODELS))
    parser.add_argument("--backends", default="cuda,cudnn")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        return 77
    start = time.monotonic()
    tool = pathlib.Path(options.tools) / "zoo_parity"
    report = zoo.Report()
    for image in map(int, options.images.split(",")):
        for model in options.models.split(","):
            with tempfile.TemporaryDirectory() as folder:
                size = max(image, zoo.SMALLEST.get(model, 0))
                compare(tool, pathlib.Path(folder), report, model, size, 16 if size < 128 else 8, options.backends.split(","),
                        options.precisions.split(","))
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}; at most {zoo.TIMES:g} times PyTorch's own error; "
          f"{time.monotonic() - start:.0f} s")
    print(f"{report.compared - report.failed} passed, {report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
