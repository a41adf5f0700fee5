"""Training steps of torchvision's networks beside torchvision itself: `ridgeline bench`, all in turns.

usage: bench/zoo.py [--models A,B] [--backends auto] [--modes eager,channels_last,compile] [--image 64] [--batch 32]
                    [--seconds 20] [--results FILE] [--out FILE]

PyTorch runs torchvision's own modules in eager mode, in channels_last and compiled (--modes leaves some out: compiling
takes minutes for each network), and the fastest counts. The interpreter is that of RIDGELINE_PYTHON (see docs/peers.md).
Results are kept line by line in --results: a call that was interrupted goes on where it ended. Needs build/ridgeline
(made by ./run)."""

import argparse
import json
import math
import pathlib
import platform
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


def measure(model, arguments):
    """Medians in ms and their intervals by contestant, and the version of PyTorch."""
    image = max(arguments.image, SMALLEST.get(model, 0))
    batch = arguments.batch if image == arguments.image else max(1, arguments.batch // 4)
    contestants = arguments.backends + [PEERS[mode] for mode in arguments.modes]
    command = [ROOT / "build/ridgeline", "bench", model, "--image", image, "--classes", CLASSES, "--batch", batch,
               "--backend", ",".join(contestants), "--max-seconds", arguments.seconds, "--no-store", "--no-split", "--json"]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise SystemExit(f"bench of {model}: exit code {done.returncode}")
    times, version = {}, ""
    for result in json.loads(done.stdout)["results"]:
        name = result["backend"]
        if name == "torch-cpu":
            modes = [mode for mode in sorted(result["modes"], reverse=True) if mode not in ("torchvision", "eager")]
            name, version = ", ".join(modes) or "eager", result["notes"]["peer_version"]
        times[name] = [result[key] for key in ("median_ms", "ci_low_ms", "ci_high_ms")]
    return {"model": model, "image": image, "batch": batch, "version": version, "times": times}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def table(rows, arguments):
    head = ["network", "image", "batch", *arguments.backends, *arguments.modes,
            *(f"{name} / PyTorch" for name in arguments.backends)]
    lines = ["# One training step beside PyTorch", "", "`" + " ".join(["bench/zoo.py", *sys.argv[1:]]) + "`", "",
             f"{processor()}; {rows[0]['version']}. Medians in ms; × says how many times as fast a backend is as PyTorch's "
             "fastest mode.", "", "| " + " | ".join(head) + " |", "|---|" + "--:|" * (len(head) - 1)]
    ratios = {name: [] for name in arguments.backends}
    for row in rows:
        best = min(row["times"][name][0] for name in arguments.modes if name in row["times"])
        cells = [row["model"], str(row["image"]), str(row["batch"])]
        for name in [*arguments.backends, *arguments.modes]:
            cells.append(f"{row['times'][name][0]:.1f}" if name in row["times"] else "n/a")
        for name in arguments.backends:
            ratios[name].append(best / row["times"][name][0])
            cells.append(f"{ratios[name][-1]:.2f}×")
        lines.append("| " + " | ".join(cells) + " |")
    for name, values in ratios.items():
        mean = math.exp(sum(map(math.log, values)) / len(values))
        lines += ["", f"{name}: geometric mean {mean:.2f}×, lowest {min(values):.2f}×, {len(values)} networks."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=MODELS)
    parser.add_argument("--backends", type=lambda text: text.split(","), default=["auto"])
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(PEERS))
    parser.add_argument("--image", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = {}
    if arguments.results and arguments.results.exists():
        rows = {row["model"]: row for row in map(json.loads, arguments.results.read_text().splitlines())}
    for model in arguments.models:
        if model in rows:
            continue
        rows[model] = measure(model, arguments)
        if arguments.results:
            with arguments.results.open("a") as file:
                file.write(json.dumps(rows[model]) + "\n")
    text = table([rows[model] for model in arguments.models], arguments)
    print(text)
    if arguments.out:
        arguments.out.write_text(text)


if __name__ == "__main__":
    main()
