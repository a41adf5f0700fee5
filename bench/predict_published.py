"""Predictions from data sheets and the shipped efficiencies alone, beside published training times of other GPUs.

usage: bench/predict_published.py [--program build/ridgeline] [--rows bench/results/predict_published.csv] [--out FILE]

The shipped efficiencies were learnt on one H200; no row of the file is of one. Prints a line for each row, the median error
by GPU and of all, and how many published times lie in the stated range. The other way round, times of the H200 from those
of the file, is a row of

    ridgeline predict --check --no-store --hardware bench/results/predict_machines.toml \\
      --observed bench/results/predict_observed.csv --observed bench/results/predict_published.csv"""

import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def predict(program, row):
    words = ["predict", row["model"], "--image", row["image"], "--classes", row["classes"], "--batch", row["batch"],
             "--precision", row["precision"], "--on", row["device"], "--backend", row["backend"], "--no-store", "--top", "0",
             "--json"]
    done = subprocess.run([str(program), *words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["predictions"][0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/ridgeline")
    parser.add_argument("--rows", type=pathlib.Path, default=ROOT / "bench/results/predict_published.csv")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    lines = ["| GPU | network | batch | precision | efficiencies of | published ms | predicted ms | range | error |",
             "|---|---|--:|---|---|--:|--:|---|--:|"]
    errors, inside = {}, 0
    with open(arguments.rows, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        made, published = predict(arguments.program, row), float(row["ms"])
        error = made["step_ms"] / published - 1
        errors.setdefault(row["device"], []).append(error)
        inside += made["low_ms"] <= published <= made["high_ms"]
        lines.append(f"| {row['device']} | {row['model']} | {row['batch']} | {row['precision']} | {row['backend']} | "
                     f"{published:.4g} | {made['step_ms']:.4g} | {made['low_ms']:.3g} to {made['high_ms']:.3g} | {error:+.0%} |")
    lines += ["", "| GPU | rows | median error | median of the sizes |", "|---|--:|--:|--:|"]
    errors["all"] = [error for each in errors.values() for error in each]
    for device, each in errors.items():
        lines.append(f"| {device} | {len(each)} | {statistics.median(each):+.0%} | {statistics.median(map(abs, each)):.0%} |")
    text = "\n".join(lines) + f"\n\n{inside} of {len(rows)} published times lie in the range.\n"
    print(text)
    if arguments.out:
        arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
