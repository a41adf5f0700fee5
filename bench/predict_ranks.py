"""Predicted against measured steps of several ranks on one machine.

usage: bench/predict_ranks.py [--ranks 2] [--cases resnet18:64:16,mobilenet_v2:64:16,squeezenet1_1:64:16,mlp:28:256]
                              [--seconds 4] [--rounds 1] [--program build/ridgeline] [--out FILE]

A case is MODEL:IMAGE:BATCH, BATCH samples for each rank, one thread each. Per case, jobs take turns in one call: N ranks
that exchange gradients, and N processes that compute at the same time and exchange nothing. The prediction stands on the
latter's step and on the links measured between the ranks (ridgeline env --measure --ranks N); of the connected runs it
knows nothing. The machine should be idle and have N processors. Takes about (2 x seconds + 4) x cases x rounds seconds,
and some for the links. Exit code 1 where a prediction is more than 10% off."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_ERROR = 0.10
COLUMNS = "device,backend,kind,model,image,classes,batch,precision,part,without,ms,source"
# The step's time is measured: these rates only divide it among its kinds of work.
MACHINE = """[[cpu]]
name = "one core"
match = "one core"
fma_units = 2
vector_bits = 512
fp32_gflops = 100
memory_gb_per_s = 10
cache_mb = 2
source = "assumed: the step's time is measured"
"""


def call(program, *words):
    done = subprocess.run([str(program), *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def steps(arguments, case):
    """Medians of a step in ms: with exchanges, and of processes that exchange nothing; and the exposed exchange."""
    model, image, batch = case
    text = call(arguments.program, "bench", model, "--image", image, "--batch", batch, "--classes", 10, "--threads", 1,
                "--backend", "native", "--ranks", arguments.ranks, "--scaling", "weak", "--unconnected", "--no-split",
                "--max-seconds", arguments.seconds, "--telemetry", 0, "--no-store", "--json")
    found = {}
    for result in json.loads(text)["results"]:
        if result["ranks"] == arguments.ranks:
            found["alone" if result["transport"] == "unconnected" else "measured"] = result["median_ms"]
    if len(found) != 2:
        sys.exit(f"{model}: not both kinds of runs were measured")
    return found["measured"], found["alone"]


def predict(arguments, case, store, folder, alone):
    model, image, batch = case
    channels = 1 if model in ("mlp", "mnist_cnn") else 3
    machine = folder / "one_core.toml"
    machine.write_text(MACHINE)
    rows = folder / "rows.csv"
    rows.write_text(f"{COLUMNS}\none core,native,training,{model},{channels}x{image}x{image},10,{batch},fp32,,,{alone},"
                    "unconnected\n")
    text = call(arguments.program, "predict", model, "--image", image, "--classes", 10, "--batch", batch, "--on", machine,
                "--hardware", machine, "--observed", rows, "--store", store, "--ranks", arguments.ranks, "--scaling",
                "weak", "--network", "measured", "--json")
    return json.loads(text)["ranks"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--cases", default="resnet18:64:16,mobilenet_v2:64:16,squeezenet1_1:64:16,mlp:28:256")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/ridgeline")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    cases = [(m, int(i), int(b)) for m, i, b in (case.split(":") for case in arguments.cases.split(","))]
    lines = [f"{arguments.ranks} ranks, one thread each, {len(os.sched_getaffinity(0))} processors", "",
             "| network | unconnected ms | exchange ms | predicted ms | range | measured ms | error |",
             "|---|--:|--:|--:|--:|--:|--:|"]
    worst = 0.0
    start = time.monotonic()

    def told(line):
        lines.append(line)
        print(f"{time.monotonic() - start:5.0f} s  {line}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        store = folder / "ranks.db"
        call(arguments.program, "env", "--measure", "--ranks", arguments.ranks, "--store", store)
        print(f"{time.monotonic() - start:5.0f} s  links measured", file=sys.stderr, flush=True)
        for case in cases:
            rounds = [steps(arguments, case) for _ in range(arguments.rounds)]
            measured, alone = (statistics.median(column) for column in zip(*rounds))
            row = predict(arguments, case, store, folder, alone)
            error = row["step_ms"] / measured - 1
            worst = max(worst, abs(error))
            told(f"| {case[0]} {case[1]}×{case[1]} b{case[2]} | {alone:.4g} | {row['exchange_ms']:.3g} | {row['step_ms']:.4g} | "
                 f"{row['low_ms']:.4g} to {row['high_ms']:.4g} | {measured:.4g} | {error:+.1%} |")
    text = "\n".join(lines) + f"\n\nworst: {worst:.1%}\n"
    print(text)
    if arguments.out:
        arguments.out.write_text(text)
    sys.exit(1 if worst > MOST_ERROR else 0)


if __name__ == "__main__":
    main()
