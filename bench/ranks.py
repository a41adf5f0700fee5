"""Training steps of several ranks beside PyTorch's DistributedDataParallel over gloo, in turns.

usage: bench/ranks.py [--ranks 1,2] [--cases mnist_cnn:28:512:strong,resnet18:64:16:weak] [--threads 1] [--rounds 3]
                      [--seconds 8] [--results FILE] [--out FILE]

A case is MODEL:IMAGE:BATCH:SCALING; with weak scaling BATCH is that of each rank. A round measures ours with every number
of ranks, and beside it as many processes that exchange nothing, then PyTorch with every number of ranks, in NCHW and in
channels_last; the faster one counts. All have the same threads for each rank. On a machine of 16 processors use
--ranks 1,2,4,8,16. The interpreter that runs this script needs PyTorch with gloo. Results are kept line by line in
--results: a call goes on where the one before was interrupted. Needs build/ridgeline (made by ./run)."""

import argparse
import json
import os
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEARNING_RATE, MOMENTUM, CLASSES, WARMUP = 0.01, 0.9, 10, 5


# ---- PyTorch: one process of several.

def mnist_cnn(nn, image):
    side = ((image - 2) // 2 - 2) // 2
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(16 * side * side, 128), nn.ReLU(), nn.Linear(128, CLASSES))


def resnet18(nn, _):
    class Block(nn.Module):
        def __init__(self, before, planes, stride):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(before, planes, 3, stride, 1, bias=False), nn.BatchNorm2d(planes), nn.ReLU(inplace=True),
                nn.Conv2d(planes, planes, 3, 1, 1, bias=False), nn.BatchNorm2d(planes))
            self.shortcut = nn.Identity() if stride == 1 and before == planes else nn.Sequential(
                nn.Conv2d(before, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x):
            return self.relu(self.body(x) + self.shortcut(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for planes, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(before, planes, stride), Block(planes, planes, 1)]
        before = planes
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


MODELS = {"mnist_cnn": (mnist_cnn, 1), "resnet18": (resnet18, 3)}


def worker(rank, ranks, port, model, image, rows, threads, seconds, layout):
    """Trains on one batch again and again; rank 0 prints the seconds of each step."""
    import torch
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    make, channels = MODELS[model]
    network = make(torch.nn, image)
    images, labels = torch.rand(rows, channels, image, image), torch.randint(CLASSES, (rows,))
    if layout == "channels_last":
        network = network.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)
    if ranks > 1:
        torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
        network = torch.nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    times, begin = [], time.perf_counter()
    while True:
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
        more = torch.tensor([1.0 if time.perf_counter() - begin < seconds or len(times) < 3 * WARMUP else 0.0])
        if ranks > 1:
            torch.distributed.broadcast(more, 0)
        if not more.item():
            break
    if rank == 0:
        print(json.dumps({"version": torch.__version__, "seconds": times[WARMUP:]}))


def torch_times(case, ranks, arguments, layout):
    model, image, batch, scaling = case
    rows = batch if scaling == "weak" else batch // ranks
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = dict(os.environ, OMP_NUM_THREADS=str(arguments.threads))
    words = [ranks, port, model, image, rows, arguments.threads, arguments.seconds / 2, layout]
    jobs = [subprocess.Popen([sys.executable, __file__, "--worker", json.dumps([rank, *words])], env=environment,
                             stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL) for rank in range(ranks)]
    text = jobs[0].communicate()[0]
    if any(job.wait() for job in jobs):
        raise SystemExit(f"PyTorch with {ranks} ranks failed")
    return json.loads(text)


# ---- Ours, and the table.

def our_times(case, arguments):
    model, image, batch, scaling = case
    command = [ROOT / "build/ridgeline", "bench", model, "--image", image, "--classes", CLASSES, "--batch", batch,
               "--ranks", ",".join(map(str, arguments.ranks)), "--scaling", scaling, "--unconnected", "--threads",
               arguments.threads, "--momentum", MOMENTUM, "--max-seconds", arguments.seconds, "--no-store", "--no-split",
               "--telemetry", 0, "--json"]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"bench of {model}: exit code {done.returncode}")
    return json.loads(done.stdout)


def one_round(case, number, arguments):
    """Medians in ms of every contestant, in random order."""
    found = {"case": case, "round": number, "torch": {}}
    jobs = [None] + [(ranks, layout) for ranks in arguments.ranks for layout in ("nchw", "channels_last")]
    random.Random(number).shuffle(jobs)
    for job in jobs:
        if job is None:
            document = our_times(case, arguments)
            found["ours"] = [{key: result[key] for key in ("ranks", "transport", "median_ms", "exchange_ms", "exposed_ms")}
                             for result in document["results"]]
            found["scaling"] = document["scaling"]
        else:
            result = torch_times(case, *([job[0], arguments, job[1]]))
            found["version"] = result["version"]
            found["torch"][f"{job[0]} {job[1]}"] = 1e3 * statistics.median(result["seconds"])
    return found


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def spread(values, digits=1):
    middle = statistics.median(values)
    return f"{middle:.{digits}f}" + (f" ({min(values):.{digits}f}–{max(values):.{digits}f})" if len(values) > 1 else "")


def table(rounds, arguments):
    lines = ["# Several ranks beside PyTorch", "", "`" + " ".join(["bench/ranks.py", *sys.argv[1:]]) + "`", "",
             f"{processor()}, {os.cpu_count()} processors, {arguments.threads} thread(s) for each rank; PyTorch "
             f"{rounds[0]['version']}, DistributedDataParallel over gloo. Medians of a step in ms: the median of the rounds, "
             "with their range. PyTorch: the faster of NCHW and channels_last. Efficiency: samples per second for each rank, "
             "over those of one rank. Of unconnected: speed as a share of as many processes of ours that compute at the same "
             "time and exchange nothing. Exposed: the part of a step in which a rank only waits for gradients.", "",
             "| network | scaling | ranks | batch | ours ms | PyTorch ms | ours / PyTorch | our efficiency | PyTorch's | "
             "of unconnected | exchange ms | exposed ms |", "|---|---|" + "--:|" * 10]
    cases = []
    for found in rounds:
        if found["case"] not in cases:
            cases.append(found["case"])
    for case in cases:
        model, image, batch, scaling = case
        mine = [found for found in rounds if found["case"] == case]
        base = {}
        for ranks in arguments.ranks:
            own, theirs, of, exchange, exposed = [], [], [], [], []
            for found in mine:
                for result in found["ours"]:
                    if result["ranks"] != ranks or result["transport"] == "unconnected":
                        continue
                    own.append(result["median_ms"])
                    exchange.append(result["exchange_ms"] or 0.0)
                    exposed.append(result["exposed_ms"] or 0.0)
                theirs.append(min(found["torch"][f"{ranks} {layout}"] for layout in ("nchw", "channels_last")))
                of += [100.0 * point["of_unconnected"]["value"] for point in found["scaling"]
                       if point["ranks"] == ranks and point["of_unconnected"] and point["scaling"] == scaling]
            base.setdefault("ours", own)
            base.setdefault("torch", theirs)
            share = 1.0 if scaling == "weak" else arguments.ranks[0] / ranks
            efficiency = [100.0 * share * one / now for one, now in zip(base["ours"], own)]
            their_efficiency = [100.0 * share * one / now for one, now in zip(base["torch"], theirs)]
            whole = batch * ranks if scaling == "weak" else batch
            lines.append(f"| {model} {image}×{image} | {scaling} | {ranks} | {whole} | {spread(own)} | {spread(theirs)} | "
                         f"{statistics.median(t / o for t, o in zip(theirs, own)):.2f}× | {spread(efficiency, 0)}% | "
                         f"{spread(their_efficiency, 0)}% | {spread(of, 0) + '%' if of else '–'} | "
                         f"{spread(exchange, 2) if ranks > 1 else '–'} | {spread(exposed, 2) if ranks > 1 else '–'} |")
    return "\n".join(lines) + "\n"


def case_of(text):
    model, image, batch, scaling = text.split(":")
    if model not in MODELS or scaling not in ("strong", "weak"):
        raise argparse.ArgumentTypeError(text)
    return [model, int(image), int(batch), scaling]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ranks", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2])
    parser.add_argument("--cases", type=lambda text: [case_of(word) for word in text.split(",")],
                        default=[case_of("mnist_cnn:28:512:strong"), case_of("resnet18:64:16:weak")])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return worker(*arguments.worker)
    rounds = []
    if arguments.results and arguments.results.exists():
        rounds = [json.loads(line) for line in arguments.results.read_text().splitlines()]
    for number in range(arguments.rounds):
        for case in arguments.cases:
            if any(found["case"] == case and found["round"] == number for found in rounds):
                continue
            rounds.append(one_round(case, number, arguments))
            print(f"round {number + 1}: {case}", file=sys.stderr)
            if arguments.results:
                with arguments.results.open("a") as file:
                    file.write(json.dumps(rounds[-1]) + "\n")
    text = table([found for found in rounds if found["case"] in arguments.cases], arguments)
    if arguments.out:
        arguments.out.write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
