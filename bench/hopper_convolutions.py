"""The convolutions on Hopper's own instructions beside cuDNN, layer by layer, as one table in markdown.

usage: bench/hopper_convolutions.py [--program build/bench/hopper_convolution] [--roles LIST] [--out FILE]

Ours are checked by the program that times them. cuDNN runs as PyTorch calls it, channels_last, with the engine
that cudnn.benchmark picks. Both run on one set of tensors over and over, in bf16 at batch 128. Needs a GPU of
compute capability 9.0 and PyTorch."""

import argparse
import math
import pathlib
import re
import subprocess

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH = 128
# What cuDNN is asked for beside each: what comes on top of a convolution it does not do.
COUNTERPARTS = {"forward": "forward", "statistics": "forward", "data": "data", "gated": "data", "added": "data",
                "weights": "weights"}


def milliseconds(run):
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def batch(runs):
        begin.record()
        for _ in range(runs):
            run()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / runs

    runs = max(3, min(50, int(2.0 / max(batch(3), 1e-3))))
    return sorted(batch(runs) for _ in range(5))[2]


def cudnn_milliseconds(kind, layer):
    channels, outputs, kernel, _, stride, height, width = map(
        int, re.match(r"(\d+) -> (\d+) (\d+)x(\d+)/(\d+) (\d+)x(\d+)", layer).groups())

    def random(*shape):
        values = torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
        return values.to(memory_format=torch.channels_last)

    src, weights = random(BATCH, channels, height, width), random(outputs, channels, kernel, kernel)
    pad = kernel // 2

    def forward():
        return torch.nn.functional.conv2d(src, weights, stride=stride, padding=pad)

    diff = torch.randn_like(forward())

    def backward():
        return torch.ops.aten.convolution_backward(diff, src, weights, None, [stride] * 2, [pad] * 2, [1, 1], False,
                                                   [0, 0], 1, [kind == "data", kind == "weights", False])

    return milliseconds(forward if kind == "forward" else backward)


def measured(program, role):
    """Of each layer: how often ResNet-50 has it, tile, milliseconds, TFLOP/s."""
    output = subprocess.run([program, role, "chosen"], check=True, capture_output=True, text=True).stdout
    layers = {}
    for line in output.splitlines():
        _, tile, layer, count, time, rate, error = line.split(",")
        if not time:
            continue
        if "WRONG" in error or "NOT" in error:
            raise SystemExit(line)
        layers[layer] = (int(count), tile, float(time), rate)
    return layers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/bench/hopper_convolution"))
    parser.add_argument("--roles", default=",".join(COUNTERPARTS))
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    times, rows, sums = {}, [], []
    for role in arguments.roles.split(","):
        kind, total, of_cudnn, ratios = COUNTERPARTS[role], 0.0, 0.0, []
        for layer, (count, tile, ours, rate) in measured(arguments.program, role).items():
            if (kind, layer) not in times:
                times[kind, layer] = cudnn_milliseconds(kind, layer)
            theirs = times[kind, layer]
            rows.append(f"| {role} | {layer} | {tile} | {ours:.4f} | {rate} | {theirs:.4f} | {theirs / ours:.2f}× |")
            total, of_cudnn = total + count * ours, of_cudnn + count * theirs
            ratios.append(math.log(theirs / ours))
        mean = math.exp(sum(ratios) / len(ratios))
        sums.append(f"| {role} | {total:.2f} | {of_cudnn:.2f} | {mean:.2f}× |")
    text = "\n".join(["# Convolutions on Hopper's instructions beside cuDNN's", "", "`bench/hopper_convolutions.py`", "",
                      f"{torch.cuda.get_device_name()}, bf16, batch {BATCH}; cuDNN "
                      f"{torch.backends.cudnn.version()} without statistics, gates and sums", "",
                      "| role | ResNet-50's layers, ms | cuDNN, ms | geometric mean of all layers |", "|---|---|---|---|",
                      *sums, "", "| role | layer | tile | ms | TFLOP/s | cuDNN, ms | ratio |",
                      "|---|---|---|---|---|---|---|", *rows, ""])
    if arguments.out:
        arguments.out.write_text(text)
    print("\n".join(sums))


if __name__ == "__main__":
    main()
