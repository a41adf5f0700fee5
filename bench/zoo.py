"""Training steps of the zoo beside PyTorch, interleaved in one run.

usage: bench/zoo.py [--rounds N] [--threads N] [--models a,b] [--backends native,onednn,auto]
                    [--sizes 64,224] [--out FILE]

Images of 64x64 in batches of 32 with 200 classes, and of 224x224 in batches of 16 with 1000. Every
contestant runs in a process of its own, one after the other, in random order within a round; a row
shows the median over the rounds of each round's median step. PyTorch runs in both of its layouts
with /usr/bin/python3's packages and the better one counts. Memory is the highest resident set of
the process less what it had before the network was built. Needs build/ridgeline (made by ./run)."""

import argparse
import json
import math
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = ["resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1", "densenet121"]
CASES = {64: (32, 200), 224: (16, 1000)}  # size: (batch, classes)
LAYOUTS = {"PyTorch NCHW": False, "PyTorch channels_last": True}
WARMUP = 2


def torch_child(model, size, channels_last, threads, steps):
    import resource
    import time

    import torch
    import torch.nn.functional as F
    import torchvision

    def resident():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    torch.set_num_threads(threads)
    torch.conv2d(torch.zeros(1, 1, 4, 4), torch.zeros(1, 1, 3, 3))  # the library itself is loaded
    before = resident()
    batch, classes = CASES[size]
    network = getattr(torchvision.models, model)(num_classes=classes)
    images, labels = torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,))
    if channels_last:
        network = network.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    times = []
    for _ in range(WARMUP + steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(network(images), labels).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    print(json.dumps({"ms": statistics.median(times[WARMUP:]) * 1e3, "memory": resident() - before}))


def torch_run(model, size, layout, threads, steps):
    command = [sys.executable, __file__, "--child", model, str(size), str(int(LAYOUTS[layout])),
               str(threads), str(steps)]
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    result = json.loads(subprocess.check_output(command, env=environment))
    return result["ms"], result["memory"]


def run_measured(command):
    """Standard output of a command and its highest resident set in bytes."""
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        text = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}")
    return text, usage.ru_maxrss * 1024


def ridgeline_run(model, size, backend, threads, steps):
    batch, classes = CASES[size]
    program = str(ROOT / "build" / "ridgeline")
    text, memory = run_measured([
        program, "bench", model, "--image", str(size), "--classes", str(classes), "--batch",
        str(batch), "--backend", backend, "--threads", str(threads), "--warmup", str(WARMUP),
        "--iterations", str(steps), "--no-store", "--no-split", "--telemetry", "0", "--json"])
    _, before = run_measured([program, "models", "--json"])
    return json.loads(text)["results"][0]["median_ms"], memory - before


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3, help="measured steps of a round")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--backends", default="native,onednn,auto")
    parser.add_argument("--sizes", default="64,224")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    backends = arguments.backends.split(",")
    cases = [(model, int(size)) for size in arguments.sizes.split(",") for model in arguments.models.split(",")]
    times, memories = {}, {}
    for model, size in cases:
        if "auto" in backends:  # its choices are measured once and then come from the disk
            ridgeline_run(model, size, "auto", arguments.threads, 1)
    for number in range(arguments.rounds):
        for model, size in cases:
            contestants = [*LAYOUTS, *backends]
            random.shuffle(contestants)
            for who in contestants:
                run = torch_run if who in LAYOUTS else ridgeline_run
                ms, memory = run(model, size, who, arguments.threads, arguments.steps)
                times.setdefault((model, size, who), []).append(ms)
                memories.setdefault((model, size, who), []).append(memory)
                print(f"round {number + 1} {model} {size} {who}: {ms:.1f} ms", file=sys.stderr)

    import torch

    lines = ["# The zoo: one training step beside PyTorch", "",
             "`" + " ".join(["bench/zoo.py", *sys.argv[1:]]) + "`", "",
             f"{processor()}, {arguments.threads} threads, PyTorch {torch.__version__}, "
             f"{arguments.rounds} rounds in random order; ms a step (median), MB of memory (10^6)", ""]
    head = [*LAYOUTS, *backends, *(f"{b} / PyTorch" for b in backends), "PyTorch MB", *(f"{b} MB" for b in backends)]
    lines += ["| network | " + " | ".join(head) + " |", "|" + "---|" * (len(head) + 1)]
    ratios = {backend: [] for backend in backends}
    for model, size in cases:
        median = {who: statistics.median(times[model, size, who]) for who in [*LAYOUTS, *backends]}
        memory = {who: statistics.median(memories[model, size, who]) for who in [*LAYOUTS, *backends]}
        best = min(LAYOUTS, key=median.get)
        for backend in backends:
            ratios[backend].append(median[best] / median[backend])
        cells = [f"{median[who]:.1f}" for who in [*LAYOUTS, *backends]]
        cells += [f"{ratios[backend][-1]:.2f}×" for backend in backends]
        cells += [f"{min(memory[who] for who in LAYOUTS) / 1e6:.0f}", *(f"{memory[b] / 1e6:.0f}" for b in backends)]
        batch = CASES[size][0]
        lines.append(f"| {model} {size}×{size} b{batch} | " + " | ".join(cells) + " |")
    for backend in backends:
        mean = math.exp(statistics.mean(map(math.log, ratios[backend])))
        lines.append(f"\n{backend}: geometric mean {mean:.2f}×, lowest {min(ratios[backend]):.2f}×")
    text = "\n".join(lines) + "\n"
    print(text)
    if arguments.out:
        pathlib.Path(arguments.out).write_text(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        model, size, channels_last, threads, steps = sys.argv[2:]
        torch_child(model, int(size), channels_last == "1", int(threads), int(steps))
    else:
        main()
