"""Predicted against measured steps of several ranks on one machine.

usage: bench/predict_ranks.py [--ranks 2] [--cases resnet18:64:16,mobilenet_v2:64:16,squeezenet1_1:64:16,mlp:28:256]
                              [--seconds 6] [--rounds 3] [--program build/ridgeline] [--out FILE]

A case is MODEL:IMAGE:BATCH, BATCH samples for each rank. Each round measures N ranks that exchange gradients and N
processes that compute at the same time and exchange nothing, one thread each. The prediction stands on the latter and
on the links measured between the ranks (ridgeline env --measure --ranks N); nothing of the connected runs is known to
it. The processor should be idle and have N processors: on a host of 16, --ranks 16. Exit code 1 where a prediction is
more than 10% off. Needs a build (./run) with MPI."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_ERROR = 0.10
COLUMNS = "device,backend,kind,model,image,classes,batch,precision,part,without,ms,source"


def call(program, *words):
    done = subprocess.run([str(program), *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def bench(arguments, case):
    """Medians of a step in ms: with exchanges, and of processes that exchange nothing."""
    model, image, batch = case
    text = call(arguments.program, "bench", model, "--image", image, "--batch", batch, "--classes", 10, "--threads", 1,
                "--backend", "native", "--ranks", arguments.ranks, "--scaling", "weak", "--unconnected", "--no-split",
                "--max-seconds", arguments.seconds, "--telemetry", 0, "--no-store", "--json")
    connected = unconnected = None
    for result in json.loads(text)["results"]:
        if result.get("transport") == "unconnected":
            unconnected = result["median_ms"]
        elif result.get("ranks") == arguments.ranks:
            connected = result["median_ms"]
    if connected is None or unconnected is None:
        sys.exit(f"{model}: not both kinds of runs were measured")
    return connected, unconnected


def predict(arguments, case, store, machine, folder, alone):
    model, image, batch = case
    channels = 1 if model in ("mlp", "mnist_cnn") else 3
    rows = folder / "rows.csv"
    rows.write_text(f"{COLUMNS}\none core,native,training,{model},{channels}x{image}x{image},10,{batch},fp32,,,{alone},"
                    "unconnected\n")
    text = call(arguments.program, "predict", model, "--image", image, "--classes", 10, "--batch", batch, "--on", machine,
                "--hardware", machine, "--observed", rows, "--store", store, "--ranks", arguments.ranks, "--scaling",
                "weak", "--network", "measured", "--json")
    return json.loads(text)["ranks"][0]


def machine_file(folder, store, program):
    """One core as the ceilings tell it: what the steps' shares of a measured time follow."""
    found = json.loads(call(program, "env", "--measure", "--device", "cpu", "--store", store, "--json"))
    rates = {(c["kind"], c["subject"], c["scope"]): c["value"] for c in found["ceilings"]}
    cores = json.loads(call(program, "env", "--json"))["cpu"]["usable_processors"]
    flops = rates["compute", "fp32", "one core"]
    memory = rates["bandwidth", "memory", "all cores"]
    path = folder / "one_core.toml"
    path.write_text(f'[[cpu]]\nname = "one core"\nmatch = "one core"\nfma_units = 1\nvector_bits = 64\n'
                    f'fp32_gflops = {flops / 1e9}\nmemory_gb_per_s = {memory / 1e9 / cores}\ncache_mb = 1\n'
                    'source = "measured"\n')
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--cases", default="resnet18:64:16,mobilenet_v2:64:16,squeezenet1_1:64:16,mlp:28:256")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/ridgeline")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    cases = [(m, int(i), int(b)) for m, i, b in (case.split(":") for case in arguments.cases.split(","))]
    lines = ["| network | ranks | unconnected ms | predicted ms | range | measured ms | error |", "|---|--:|--:|--:|--:|--:|--:|"]
    worst = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        store = folder / "ranks.db"
        machine = machine_file(folder, store, arguments.program)
        call(arguments.program, "env", "--measure", "--ranks", arguments.ranks, "--store", store)
        for case in cases:
            rounds = [bench(arguments, case) for _ in range(arguments.rounds)]
            measured, alone = (statistics.median(column) for column in zip(*rounds))
            row = predict(arguments, case, store, machine, folder, alone)
            error = row["step_ms"] / measured - 1
            worst = max(worst, abs(error))
            lines.append(f"| {case[0]} {case[1]}×{case[1]} b{case[2]} | {arguments.ranks} | {alone:.4g} | {row['step_ms']:.4g} | "
                         f"{row['low_ms']:.4g} to {row['high_ms']:.4g} | {measured:.4g} | {error:+.1%} |")
            print(lines[-1], file=sys.stderr)
    text = "\n".join(lines) + f"\n\nworst: {worst:.1%}\n"
    print(text)
    if arguments.out:
        arguments.out.write_text(text)
    sys.exit(1 if worst > MOST_ERROR else 0)


if __name__ == "__main__":
    main()
