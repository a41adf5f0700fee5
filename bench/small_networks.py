"""Ridgeline beside PyTorch and NumPy on the two small networks, interleaved in one run.

usage: bench/small_networks.py [--rounds N] [--threads N] [--out FILE]

Each round times every contestant once, in random order; a row shows the median over all rounds'
medians and the ratio to PyTorch's. PyTorch and NumPy are those of the interpreter that runs this.
Needs build/ridgeline (made by ./run)."""

import argparse
import json
import pathlib
import platform
import random
import statistics
import subprocess
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = 59000
BATCH = 512


def median_ms(step, warmup, iterations):
    for _ in range(warmup):
        step()
    times = []
    for _ in range(iterations):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


class MnistCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.fc1 = nn.Linear(400, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def torch_step(model, images, labels, rate, momentum):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum)

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def numpy_mlp_step():
    """One full-batch iteration as the from-scratch study writes it: columns are samples."""
    x = np.random.rand(784, ROWS).astype(np.float32)
    one_hot = np.eye(10, dtype=np.float32)[np.random.randint(0, 10, ROWS)].T
    w1 = np.random.rand(10, 784).astype(np.float32) - 0.5
    w2 = np.random.rand(10, 10).astype(np.float32) - 0.5
    b1, b2 = np.zeros((10, 1), np.float32), np.zeros((10, 1), np.float32)

    def step():
        z1 = w1 @ x + b1
        a1 = np.maximum(z1, 0)
        z2 = w2 @ a1 + b2
        e = np.exp(z2 - z2.max(0))
        d2 = e / e.sum(0) - one_hot
        d1 = (w2.T @ d2) * (z1 > 0)
        w2[:] -= 0.1 / ROWS * (d2 @ a1.T)
        b2[:] -= 0.1 / ROWS * d2.sum(1, keepdims=True)
        w1[:] -= 0.1 / ROWS * (d1 @ x.T)
        b1[:] -= 0.1 / ROWS * d1.sum(1, keepdims=True)

    return step


def ridgeline_ms(model, backend, batch, iterations, threads):
    command = [ROOT / "build" / "ridgeline", "bench", model, "--backend", backend, "--batch", str(batch),
               "--warmup", "5", "--iterations", str(iterations), "--threads", str(threads),
               "--no-store", "--no-split", "--telemetry", "0", "--json"]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result["results"][0]["median_ms"]


def contestants(threads):
    cnn = torch_step(MnistCnn(), torch.rand(BATCH, 1, 28, 28), torch.randint(0, 10, (BATCH,)), 0.01, 0.9)
    mlp_model = nn.Sequential(nn.Linear(784, 10), nn.ReLU(), nn.Linear(10, 10))
    mlp = torch_step(mlp_model, torch.rand(ROWS, 784), torch.randint(0, 10, (ROWS,)), 0.1, 0.0)
    numpy_mlp = numpy_mlp_step()
    rows = {("mnist_cnn", "PyTorch"): lambda: median_ms(cnn, 3, 20),
            ("mlp", "PyTorch"): lambda: median_ms(mlp, 2, 6),
            ("mlp", "NumPy"): lambda: median_ms(numpy_mlp, 2, 6)}
    for backend in ("native", "onednn", "auto"):
        rows["mnist_cnn", backend] = lambda b=backend: ridgeline_ms("mnist_cnn", b, BATCH, 60, threads)
        rows["mlp", backend] = lambda b=backend: ridgeline_ms("mlp", b, ROWS, 20, threads)
    return rows


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(": ")[1]
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = contestants(options.threads)
    times = {key: [] for key in rows}
    for _ in range(options.rounds):
        for key in random.sample(list(rows), len(rows)):
            times[key].append(rows[key]())
    lines = [f"{processor()}, {options.threads} threads, PyTorch {torch.__version__}, NumPy {np.__version__}, "
             f"{options.rounds} rounds in random order", "",
             "| network | who | ms a step (median) | min | max | samples/s | faster than PyTorch | than NumPy |",
             "|---|---|---|---|---|---|---|---|"]
    for (network, who), values in sorted(times.items()):
        median = statistics.median(values)
        samples = BATCH if network == "mnist_cnn" else ROWS
        against = [statistics.median(times[network, peer]) / median if (network, peer) in times else None
                   for peer in ("PyTorch", "NumPy")]
        ratios = ["n/a" if ratio is None else f"{ratio:.2f}×" for ratio in against]
        lines.append(f"| {network} | {who} | {median:.2f} | {min(values):.2f} | {max(values):.2f} | "
                     f"{samples / median * 1e3:,.0f} | {ratios[0]} | {ratios[1]} |")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if options.out:
        options.out.write_text(f"# mnist_cnn (batch {BATCH}) and mlp (full batch of {ROWS:,}): one training step\n\n"
                               f"`bench/small_networks.py --rounds {options.rounds} --threads {options.threads}`\n\n{text}")


if __name__ == "__main__":
    main()
