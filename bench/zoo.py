"""Training steps of torchvision's networks beside torchvision itself: `ridgeline bench`, all in turns.

usage: bench/zoo.py [--models A,B] [--backends auto] [--modes eager,channels_last,compile] [--image 64] [--batch 32]
                    [--precision fp32] [--seconds 20 | --iterations N] [--results FILE] [--out FILE]

PyTorch runs torchvision's own modules in eager mode, in channels_last and compiled (--modes leaves some out: compiling
takes minutes for each network), and the fastest counts; in bf16 it runs in autocast. A mode that fails is named with
its signal or as "failed". The interpreter is that of RIDGELINE_PYTHON (see docs/peers.md). Results are kept line by
line in --results: a call that was interrupted goes on where it ended, and the table has all of the file's lines. Needs
build/ridgeline (made by ./run)."""

import argparse
import json
import math
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = """alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 mnasnet1_0
mobilenet_v2 mobilenet_v3_large regnet_x_800mf regnet_y_800mf resnet50 resnext50_32x4d shufflenet_v2_x1_0 squeezenet1_1
vgg16 vgg16_bn wide_resnet50_2""".split()
SMALLEST = {"inception_v3": 299}  # the auxiliary head takes no smaller image
PEERS = {"eager": "torch-cpu+torchvision", "channels_last": "torch-cpu+channels_last+torchvision",
         "compile": "torch-cpu+compile+torchvision"}
CLASSES = 200


def work_of(model, arguments):
    """What is measured: the network, the image, the batch and the precision."""
    image = max(arguments.image, SMALLEST.get(model, 0))
    batch = arguments.batch if image == arguments.image else max(1, arguments.batch // 4)
    return model, image, batch, arguments.precision


def contestant_of(backend, modes):
    if backend != "torch-cpu":
        return backend
    return ", ".join(m for m in sorted(modes, reverse=True) if m not in ("torchvision", "eager", "amp")) or "eager"


def failure_of(error):
    """The signal that ended a peer, or that it failed."""
    signal = re.search(r"\((SIG[A-Z]+)\)", error)
    return signal.group(1) if signal else "failed"


def measure(work, arguments):
    """Medians in ms and their intervals by contestant, what failed, and the version of PyTorch."""
    model, image, batch, precision = work
    length = ["--max-seconds", arguments.seconds]
    if arguments.iterations:
        length = ["--warmup", 2, "--iterations", arguments.iterations]
    contestants = arguments.backends + [PEERS[mode] for mode in arguments.modes]
    command = [ROOT / "build/ridgeline", "bench", model, "--image", image, "--classes", CLASSES, "--batch", batch,
               "--precision", precision, "--backend", ",".join(contestants), *length, "--no-store", "--no-split", "--json"]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=False)
    if not done.stdout:
        raise SystemExit(f"bench of {model}: exit code {done.returncode}")
    document = json.loads(done.stdout)
    times, version = {}, ""
    for result in document["results"]:
        times[contestant_of(result["backend"], result["modes"])] = [
            result[key] for key in ("median_ms", "ci_low_ms", "ci_high_ms")]
        if result["backend"] == "torch-cpu":
            version = result["notes"]["peer_version"]
    failures = {contestant_of(each["backend"], each["modes"]): failure_of(each["error"])
                for each in document["failed"]}
    for each in document["left_out"]:
        print(f"{model}: left out: {each['backend']}: {each['reason']}", file=sys.stderr)
        backend, *modes = each["backend"].split("+")
        failures[contestant_of(backend, modes)] = failure_of(each["reason"])
    return {"model": model, "image": image, "batch": batch, "precision": precision, "version": version, "times": times,
            "failures": failures}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def cell(row, name):
    if name in row["times"]:
        return f"{row['times'][name][0]:.1f}"
    return row["failures"].get(name, "n/a")


def table(rows, arguments):
    head = ["network", "precision", "image", "batch", *arguments.backends, *arguments.modes,
            *(f"{name} / PyTorch" for name in arguments.backends)]
    version = next((row["version"] for row in rows if row["version"]), "no PyTorch")
    lines = ["# One training step beside PyTorch", "", "`" + " ".join(["bench/zoo.py", *sys.argv[1:]]) + "`", "",
             f"{processor()}; {version}. Medians in ms; × says how many times as fast a backend is as PyTorch's "
             "fastest mode.", "", "| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    ratios = {name: [] for name in arguments.backends}
    for row in rows:
        peers = [row["times"][name][0] for name in arguments.modes if name in row["times"]]
        cells = [row["model"], row["precision"], str(row["image"]), str(row["batch"])]
        cells += [cell(row, name) for name in [*arguments.backends, *arguments.modes]]
        for name in arguments.backends:
            if peers and name in row["times"]:
                ratios[name].append(min(peers) / row["times"][name][0])
                cells.append(f"{ratios[name][-1]:.2f}×")
            else:
                cells.append("n/a")
        lines.append("| " + " | ".join(cells) + " |")
    for name, values in ratios.items():
        if values:
            mean = math.exp(sum(map(math.log, values)) / len(values))
            lines += ["", f"{name}: geometric mean {mean:.2f}×, lowest {min(values):.2f}×, {len(values)} rows."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=MODELS)
    parser.add_argument("--backends", type=lambda text: text.split(","), default=["auto"])
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(PEERS))
    parser.add_argument("--image", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--iterations", type=int, help="as many for each, after two for warming up")
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = {}
    if arguments.results and arguments.results.exists():
        rows = {(row["model"], row["image"], row["batch"], row["precision"]): row
                for row in map(json.loads, arguments.results.read_text().splitlines())}
    for work in [work_of(model, arguments) for model in arguments.models]:
        if work in rows:
            continue
        rows[work] = measure(work, arguments)
        if arguments.results:
            with arguments.results.open("a") as file:
                file.write(json.dumps(rows[work]) + "\n")
    text = table(list(rows.values()), arguments)
    print(text)
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
