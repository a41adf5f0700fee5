"""The opencl backend beside native and the reference, and each convolution's share of the measured OpenCL roof.

usage: bench/opencl_roofs.py [--device opencl:0] [--program build/ridgeline] [--seconds 10] [--out FILE]

Measures the device's ceilings, then training steps of mnist_cnn (batch 64) and resnet18 (3x64x64, batch 16), then a
profile of resnet18's step. Takes about four minutes; the machine should be idle. Writes Markdown."""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESNET = ["resnet18", "--image", "64", "--batch", "16"]
MNIST = ["mnist_cnn", "--batch", "64"]
PHASES = ("forward", "backward_data", "backward_weights")


def call(arguments, *words):
    done = subprocess.run([str(arguments.program), *words, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def medians(arguments, words):
    """ms with the ends of its interval, by backend."""
    options = ["--telemetry", "0", "--no-store"]
    rows = call(arguments, "bench", *words, "--backend", f"opencl@{arguments.device},native", "--max-seconds",
                str(arguments.seconds), *options)["results"]
    rows += call(arguments, "bench", *words, "--backend", "reference", "--iterations", "3", *options)["results"]
    return {row["backend"]: (row["median_ms"], row["ci_low_ms"], row["ci_high_ms"]) for row in rows}


def figure(row):
    ms, low, high = row
    return f"{ms:.3g} ms" + (f" ({low:.3g} to {high:.3g})" if low is not None else "")


def speeds(arguments):
    lines = ["| network | opencl | native | reference | reference / opencl | native / opencl |", "|---|---|---|---|--:|--:|"]
    for name, words in (("mnist_cnn, batch 64", MNIST), ("resnet18, 3x64x64, batch 16", RESNET)):
        rows = medians(arguments, words)
        ours = rows["opencl"][0]
        lines.append(f"| {name} | " + " | ".join(figure(rows[b]) for b in ("opencl", "native", "reference")) +
                     f" | {rows['reference'][0] / ours:.1f} | {rows['native'][0] / ours:.2f} |")
    return lines


def roof(arguments, store):
    found = call(arguments, "env", "--measure", "--device", arguments.device, "--store", store)
    return max(c["value"] for c in found["ceilings"] if c["kind"] == "compute" and c["subject"] == "fp32")


def shares(arguments, store, peak):
    rows = call(arguments, "profile", *RESNET, "--device", arguments.device, "--backend", "opencl", "--store", store)["rows"]
    cells, layers = {}, []
    for row in rows:
        if "conv2d" not in row["op"] or not row["flops"] or not row["ms"]:
            continue
        if row["layer"] not in layers:
            layers.append(row["layer"])
        rate = row["flops"] / row["ms"] * 1e3
        cells[row["layer"], row["phase"]] = f"{rate / 1e9:.0f} GFLOP/s, {rate / peak:.0%} ({row['kernel']})"
    lines = ["| layer | forward | data gradient | weight gradient |", "|---|---|---|---|"]
    for layer in layers:
        lines.append(f"| {layer} | " + " | ".join(cells.get((layer, phase), "none") for phase in PHASES) + " |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/ridgeline")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = str(pathlib.Path(folder) / "opencl.db")
        peak = roof(arguments, store)
        text = "\n".join([*speeds(arguments), "", f"Measured roof, fp32: {peak / 1e9:.0f} GFLOP/s", "",
                          *shares(arguments, store, peak)]) + "\n"
    print(text)
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
