"""The small networks on a GPU beside PyTorch's CUDA graph and CuPy, in one run.

usage: bench/gpu_small.py [--rounds N] [--program build/ridgeline] [--out FILE]

mnist_cnn (conv 8, conv 16, dense 128, dense 10): batch 512, SGD with momentum 0.9, data on the device. PyTorch replays the
whole step, with the fused SGD, as one CUDA graph. mlp (784-10-10): one full-batch iteration over 59,000 samples; PyTorch as a
CUDA graph, CuPy with plain array expressions. Ours normalises uint8 pixels in the same step. PyTorch's and CuPy's times are
means over many iterations without a pause, and ours are of steps queued in tens without a pause. Needs a GPU, PyTorch and CuPy."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parent.parent


def per_step(run, warmup, steps):
    for _ in range(warmup):
        run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(steps):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps * 1e3


def captured(step):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def torch_cnn(precision):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    network = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
                            nn.Flatten(), nn.Linear(400, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, fused=True)
    images, labels = torch.rand(512, 1, 28, 28, device="cuda"), torch.randint(0, 10, (512,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(network(images), labels).backward()
        optimizer.step()

    graph = captured(step)
    return per_step(graph.replay, 20, 500)


def torch_mlp():
    torch.backends.cuda.matmul.allow_tf32 = False
    network = nn.Sequential(nn.Linear(784, 10), nn.ReLU(), nn.Linear(10, 10)).cuda()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, fused=True)
    images, labels = torch.rand(59000, 784, device="cuda"), torch.randint(0, 10, (59000,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(network(images), labels).backward()
        optimizer.step()

    graph = captured(step)
    return per_step(graph.replay, 20, 300)


def cupy_mlp():
    import cupy as cp

    count = 59000
    x, labels = cp.random.rand(784, count, dtype=cp.float32), cp.random.randint(0, 10, count)
    hot = cp.zeros((10, count), cp.float32)
    hot[labels, cp.arange(count)] = 1
    w1, b1 = cp.random.rand(10, 784, dtype=cp.float32) - 0.5, cp.zeros((10, 1), cp.float32)
    w2, b2 = cp.random.rand(10, 10, dtype=cp.float32) - 0.5, cp.zeros((10, 1), cp.float32)

    def step():
        nonlocal w1, b1, w2, b2
        z1 = w1 @ x + b1
        a1 = cp.maximum(z1, 0)
        z2 = w2 @ a1 + b2
        power = cp.exp(z2 - z2.max(0))
        d2 = power / power.sum(0) - hot
        d1 = (w2.T @ d2) * (z1 > 0)
        w1, b1 = w1 - 0.1 / count * (d1 @ x.T), b1 - 0.1 / count * d1.sum(1, keepdims=True)
        w2, b2 = w2 - 0.1 / count * (d2 @ a1.T), b2 - 0.1 / count * d2.sum(1, keepdims=True)

    for _ in range(20):
        step()
    cp.cuda.Device().synchronize()
    start = time.perf_counter()
    for _ in range(300):
        step()
    cp.cuda.Device().synchronize()
    return (time.perf_counter() - start) / 300 * 1e3


def ours(program, model, backend, precision, arguments):
    command = [program, "bench", model, "--device", "cuda:0", "--backend", backend, "--precision", precision, "--warmup", "20",
               "--iterations", "300", "--no-store", "--no-split", "--telemetry", "0", "--json", *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        print(result.stderr[-400:], file=sys.stderr)
        return float("nan")
    row = json.loads(result.stdout)["results"][0]
    return row["device_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", default=str(ROOT / "build" / "ridgeline"))
    parser.add_argument("--out")
    arguments = parser.parse_args()
    cnn, mlp = ["--batch", "512"], ["--batch", "59000", "--momentum", "0"]
    contestants = {
        ("mnist_cnn b512", "PyTorch CUDA graph fp32"): lambda: torch_cnn("fp32"),
        ("mnist_cnn b512", "PyTorch CUDA graph tf32"): lambda: torch_cnn("tf32"),
        ("mnist_cnn b512", "cuda fp32"): lambda: ours(arguments.program, "mnist_cnn", "cuda", "fp32", cnn),
        ("mnist_cnn b512", "auto fp32"): lambda: ours(arguments.program, "mnist_cnn", "auto", "fp32", cnn),
        ("mlp 59,000", "CuPy"): cupy_mlp,
        ("mlp 59,000", "PyTorch CUDA graph"): torch_mlp,
        ("mlp 59,000", "cuda fp32"): lambda: ours(arguments.program, "mlp", "cuda", "fp32", mlp),
        ("mlp 59,000", "auto fp32"): lambda: ours(arguments.program, "mlp", "auto", "fp32", mlp),
    }
    times = {key: [] for key in contestants}
    for _ in range(arguments.rounds):
        for key, run in contestants.items():
            times[key].append(run())
    best = {}
    for (network, who), values in times.items():
        if not who.startswith(("cuda", "auto")):
            best[network] = min(best.get(network, float("inf")), statistics.median(values))
    lines = ["# The small networks on a GPU", "", "`" + " ".join(["bench/gpu_small.py", *sys.argv[1:]]) + "`", "",
             f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {arguments.rounds} rounds, medians", "",
             "| network | who | µs a step | against the best peer |", "|---|---|---|---|"]
    for (network, who), values in times.items():
        ms = statistics.median(values)
        lines.append(f"| {network} | {who} | {ms * 1e3:.1f} | {best[network] / ms:.2f}× |")
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.out:
        pathlib.Path(arguments.out).write_text(text)


if __name__ == "__main__":
    main()
