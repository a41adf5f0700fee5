"""How fast our own GPU convolutions are beside cuDNN's, layer by layer, in the same training steps.

usage: bench/gpu_convolutions.py [--models a,b] [--precision bf16] [--image 224] [--batch 128] [--program build/ridgeline] [--out FILE]

Both backends train the same network in one process; every step of their plans is timed alone. Nothing is fused, so
that a convolution's time is its own. Its rate is its FLOPs over its time; a row shows the share of cuDNN's rate that our
kernels reach, over the sum of a network's layers and as the geometric mean over them. Depthwise convolutions are left
out: cuDNN's are not used."""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = "resnet18,resnet50,mobilenet_v2,squeezenet1_1,densenet121"
KINDS = {"conv2d": "forward", "conv2d_backward_data": "data gradient", "conv2d_backward_weights": "weight gradient"}


def steps_of(result):
    """Milliseconds and provider of each convolution, by layer and kind."""
    found = {}
    for step in result["steps"]:
        kind = step["op"].split("+")[0]
        if kind in KINDS:
            found[step["layer"], kind] = (step["ms"], step["kernel"].split(":")[0])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--program", default=str(ROOT / "build" / "ridgeline"))
    parser.add_argument("--out")
    arguments = parser.parse_args()
    lines = ["# Our convolutions beside cuDNN's", "", "`" + " ".join(["bench/gpu_convolutions.py", *sys.argv[1:]]) + "`", "",
             f"batch {arguments.batch}, {arguments.image}x{arguments.image}, {arguments.precision}; share of cuDNN's rate", "",
             "| network | kind | layers | cuda ms | cuDNN ms | share of the sum | geometric mean |", "|---|---|---|---|---|---|---|"]
    everything = []
    for model in arguments.models.split(","):
        command = [arguments.program, "bench", model, "--device", "cuda:0", "--backend", "cuda,cudnn", "--precision", arguments.precision,
                   "--batch", str(arguments.batch), "--image", str(arguments.image), "--warmup", "3", "--iterations", "10",
                   "--per-step", "--no-store", "--no-split", "--telemetry", "0", "--json", "--no-pass", "fusion"]
        ours, theirs = (steps_of(result) for result in json.loads(subprocess.check_output(command))["results"])
        for kind, name in KINDS.items():
            pairs = [(ours[key][0], theirs[key][0]) for key in ours
                     if key[1] == kind and key in theirs and theirs[key][1] == "cudnn"]
            if not pairs:
                continue
            shares = [their / our for our, their in pairs]
            everything += shares
            lines.append(f"| {model} | {name} | {len(pairs)} | {sum(p[0] for p in pairs):.2f} | {sum(p[1] for p in pairs):.2f} | "
                         f"{sum(p[1] for p in pairs) / sum(p[0] for p in pairs):.0%} | {math.exp(statistics.mean(map(math.log, shares))):.0%} |")
            print(lines[-1], file=sys.stderr, flush=True)
    lines.append(f"\nall {len(everything)} convolutions: geometric mean {math.exp(statistics.mean(map(math.log, everything))):.0%}")
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.out:
        pathlib.Path(arguments.out).write_text(text)


if __name__ == "__main__":
    main()
