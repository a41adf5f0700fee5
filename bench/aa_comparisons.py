#!/usr/bin/env python3
"""How often comparisons err on this machine: the same step against itself, and against itself with 5% added.

    python3 bench/aa_comparisons.py [--build build] [--comparisons 100] [--slow-down 0.05] [--seconds 4] [--batch 64]
                                    [--out bench/results/aa_NAME.md]

Measures with build/bench/aa_comparisons (two candidates in one process that take turns, as 'ridgeline bench' does it) and
decides with the same code as 'ridgeline compare'. Takes twice as many times --seconds as there are --comparisons;
nothing else should run meanwhile.
"""
import argparse
import os
import pathlib
import subprocess


def processor():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--comparisons", type=int, default=100)
    parser.add_argument("--slow-down", type=float, default=0.05)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    arguments = [str(v) for v in (options.comparisons, options.slow_down, options.seconds, options.batch)]
    load_before = os.getloadavg()[0]
    table = subprocess.run([options.build / "bench/aa_comparisons", *arguments], check=True, stdout=subprocess.PIPE,
                           text=True, env={**os.environ, "OMP_WAIT_POLICY": "passive"}).stdout
    text = "\n".join([
        "# How often comparisons err",
        "",
        f"{processor()}, {len(os.sched_getaffinity(0))} cores. Load before the run: {load_before:.1f}.",
        f"`python3 bench/aa_comparisons.py --comparisons {options.comparisons} --slow-down {options.slow_down} "
        f"--seconds {options.seconds:g} --batch {options.batch}`",
        "Margin 2%, alpha 1% (99% intervals), as `ridgeline compare` has them.",
        "",
        table,
    ])
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
