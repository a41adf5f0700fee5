"""What a training step costs when Python calls it, beside the same steps in `bench`.

usage: bench/python_step.py [--device cpu] [--model mlp] [--batch 16] [--rounds 5] [--steps 2000]

`rl.bench` waits for each of its steps, as Python does for the loss of `session.step`. Both take turns; shown are the
least and the median time of a step over all rounds, and what a call from Python adds. Needs the module `ridgeline`:
installed, or PYTHONPATH=python with RIDGELINE_LIBRARY=build/libridgeline.so."""

import argparse
import statistics
import time

import numpy as np

import ridgeline as rl


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2000)
    return parser.parse_args()


def python_steps(session, images, labels, steps):
    """Microseconds of single calls."""
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        session.step(images, labels)
        times.append(1e6 * (time.perf_counter() - begin))
    return times


def main():
    options = arguments()
    net = rl.model(options.model)
    backend = "cuda" if options.device.startswith("cuda") else "native"
    session = net.session(batch=options.batch, device=options.device, backend=backend)
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (options.batch, *session.image), dtype=np.uint8)
    labels = random.integers(0, session.classes, options.batch, dtype=np.int32)
    python_steps(session, images, labels, 200)
    stepped, measured = [], []
    for _ in range(options.rounds):
        stepped += python_steps(session, images, labels, options.steps)
        row = rl.bench(net, batch=options.batch, backend=backend, device=options.device, iterations=options.steps,
                       warmup=50, telemetry=0, progress=False).rows[0]
        measured.append((1e3 * row["min_ms"], 1e3 * row["median_ms"]))
    least, median = min(stepped), statistics.median(stepped)
    bench_least, bench_median = min(each[0] for each in measured), statistics.median(each[1] for each in measured)
    print(f"{options.model}, batch {options.batch}, {backend} on {options.device}; microseconds of a step")
    print(f"{'':10}{'least':>8}{'median':>8}")
    print(f"{'Python':10}{least:8.2f}{median:8.2f}")
    print(f"{'bench':10}{bench_least:8.2f}{bench_median:8.2f}")
    print(f"{'more':10}{least - bench_least:8.2f}{median - bench_median:8.2f}")


if __name__ == "__main__":
    main()
