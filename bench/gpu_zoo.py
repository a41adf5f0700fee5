"""Training steps of the zoo on a GPU beside PyTorch, interleaved in one run.

usage: bench/gpu_zoo.py [--models a,b] [--cells 64:fp32,224:bf16] [--backends auto,cudnn,cuda] [--batch N]
                        [--rounds N] [--steps N] [--max-seconds S] [--program build/ridgeline] [--out FILE]

PyTorch runs as fast as it is known to: channels_last, the whole step with the fused SGD captured in one CUDA
graph, cudnn.benchmark on; images on the device, momentum 0.9, weight decay 1e-4. Ours runs the same step,
normalisation of uint8 pixels included, as one CUDA graph. Images of 64x64 have 200 classes, larger ones 1000;
inception_v3 gets 299x299 instead of 224x224, the least that its auxiliary head takes. `--models list` stands for the 19
networks of bench/zoo.py. The first of our rounds searches, unless the cache has the choice.
Rounds alternate between the two; a cell shows the median over the rounds of each round's mean step (PyTorch:
30 replays without a pause; ours: as many steps, queued in tens without a pause). Memory is what each holds in
tensors: PyTorch's highest allocation, ours both arenas. After --max-seconds no further network is begun. Needs a GPU
and PyTorch with torchvision."""

import argparse
import gc
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time
import warnings

import torch
import torch.nn.functional as F
import torchvision

import zoo

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ["resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1", "densenet121"]
CELLS = ["64:fp32", "64:tf32", "64:bf16", "224:tf32", "224:bf16", "224:fp16"]
AUXILIARY = {"googlenet": 0.3, "inception_v3": 0.4}  # of an auxiliary head's loss in the sum
NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}


def classes_of(size):
    return 200 if size <= 64 else 1000


def loss_of(model, outputs, labels):
    if model not in AUXILIARY:
        return F.cross_entropy(outputs, labels)
    return F.cross_entropy(outputs[0], labels) + AUXILIARY[model] * sum(F.cross_entropy(o, labels) for o in outputs[1:])


class TorchStep:
    """A whole training step in one CUDA graph."""

    def __init__(self, model, batch, size, precision):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
        layout = torch.contiguous_format if precision == "fp32" else torch.channels_last
        classes = classes_of(size)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # GoogLeNet and Inception announce another initialisation
            network = getattr(torchvision.models, model)(num_classes=classes)
        network = network.cuda().to(memory_format=layout)
        images = torch.randn(batch, 3, size, size, device="cuda").to(memory_format=layout)
        labels = torch.randint(0, classes, (batch,), device="cuda")
        optimizer = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4, fused=True)
        narrow = NARROW.get(precision)

        def step():
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", narrow or torch.bfloat16, enabled=narrow is not None, cache_enabled=False):
                loss = loss_of(model, network(images), labels)
            loss.backward()
            optimizer.step()

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(5):
                step()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            step()
        self.kept = (network, images, labels, optimizer)
        self.memory = torch.cuda.max_memory_allocated()

    def milliseconds(self, steps):
        for _ in range(5):
            self.graph.replay()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            self.graph.replay()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) / steps * 1e3


def ridgeline_step(program, model, batch, size, precision, backend, steps):
    command = [program, "bench", model, "--device", "cuda:0", "--backend", backend, "--precision", precision,
               "--batch", str(batch), "--image", str(size), "--classes", str(classes_of(size)), "--lr", "0.001",
               "--momentum", "0.9", "--weight-decay", "0.0001", "--warmup", "10", "--iterations", str(steps), "--no-store",
               "--no-split", "--telemetry", "0", "--json"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        print(f"{' '.join(command)}: exit code {result.returncode}: {result.stderr[-400:]}", file=sys.stderr)
        return math.nan, math.nan
    row = json.loads(result.stdout)["results"][0]
    return row["device_ms"], row["peak_memory_bytes"]


def geometric_mean(numbers):
    return math.exp(statistics.mean(map(math.log, numbers)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--backends", default="auto")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--max-seconds", type=float, default=math.inf)
    parser.add_argument("--program", default=str(ROOT / "build" / "ridgeline"))
    parser.add_argument("--out")
    arguments = parser.parse_args()
    start = time.monotonic()
    backends = arguments.backends.split(",")
    models = zoo.MODELS if arguments.models == "list" else arguments.models.split(",")
    lines = ["# The zoo on a GPU: one training step beside PyTorch's CUDA graph", "",
             "`" + " ".join(["bench/gpu_zoo.py", *sys.argv[1:]]) + "`", "",
             f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, "
             f"batch {arguments.batch}, {arguments.rounds} rounds; samples/s, ratio to PyTorch, MB of memory (10^6)", "",
             "| network | PyTorch | " + " | ".join(f"{b} | ratio" for b in backends) + " | PyTorch MB | "
             + " | ".join(f"{b} MB" for b in backends) + " |",
             "|---|" + "---|" * (2 + 3 * len(backends))]
    ratios = {backend: {} for backend in backends}
    for model in models:
        if time.monotonic() - start > arguments.max_seconds:
            lines.append(f"\nNot begun: {', '.join(models[models.index(model):])}.")
            break
        for cell in arguments.cells.split(","):
            begin = time.monotonic()
            size, precision = int(cell.split(":")[0]), cell.split(":")[1]
            size = max(size, zoo.SMALLEST.get(model, 0))
            theirs, ours, memory = [], {b: [] for b in backends}, {}
            peer = TorchStep(model, arguments.batch, size, precision)
            for _ in range(arguments.rounds):
                theirs.append(peer.milliseconds(arguments.steps))
                for backend in backends:
                    ms, memory[backend] = ridgeline_step(arguments.program, model, arguments.batch, size, precision,
                                                         backend, arguments.steps)
                    ours[backend].append(ms)
            peer_ms, peer_memory = statistics.median(theirs), peer.memory
            del peer
            gc.collect()
            torch.cuda.empty_cache()
            row = [f"{arguments.batch / peer_ms * 1e3:,.0f}"]
            for backend in backends:
                ms = statistics.median(ours[backend])
                ratios[backend].setdefault(cell, []).append(peer_ms / ms)
                row += [f"{arguments.batch / ms * 1e3:,.0f}", f"{peer_ms / ms:.2f}×"]
            row += [f"{peer_memory / 1e6:.0f}", *(f"{memory[b] / 1e6:.0f}" for b in backends)]
            lines.append(f"| {model} {size} {precision} | " + " | ".join(row) + " |")
            print(lines[-1], f"{time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    for backend in backends:
        flat = [ratio for cell in ratios[backend].values() for ratio in cell if not math.isnan(ratio)]
        if not flat:
            continue
        each = ", ".join(f"{cell} {geometric_mean([r for r in numbers if not math.isnan(r)] or [math.nan]):.2f}×"
                         for cell, numbers in ratios[backend].items())
        lines.append(f"\n{backend}: geometric mean {geometric_mean(flat):.2f}×, lowest {min(flat):.2f}× ({each})")
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.out:
        pathlib.Path(arguments.out).write_text(text)


if __name__ == "__main__":
    main()
