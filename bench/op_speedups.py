"""Op by op, how many times as fast the GPU is as the CPU: mlp and mnist_cnn, from stored runs.

usage: bench/op_speedups.py [--models mlp,mnist_cnn] [--batch 512] [--cpu native] [--gpu auto] [--device cuda:0]
                            [--store FILE] [--program build/ridgeline] [--out FILE]
       bench/op_speedups.py --store FILE --runs A B [--out FILE]

Measures each model twice with `bench`, on the CPU and on the device, once as the backends fuse it and once with
`--no-pass fusion`, where every op is a step of its own; then asks `compare --ops A B --json` for the rows. With --runs nothing
is measured: A and B are runs of the store, named as `compare` names them. Times of rows add up to the iteration; 'between
steps' is what an iteration takes beside its steps, below zero where steps overlap or waiting for each costs more than it.
Kept tables: bench/results/op_speedups_*.md."""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def ridgeline(options, *arguments):
    done = subprocess.run([options.program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"ridgeline {' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def measure(options, model, backend, device, fusion, label):
    arguments = ["bench", model, "--batch", str(options.batch), "--backend", backend, "--device", device]
    arguments += [] if fusion else ["--no-pass", "fusion"]
    ridgeline(options, *arguments, "--store", options.store, "--label", label, "--json")


def number(value, digits=4):
    return "n/a" if value is None else f"{value:.{digits}f}"


def table(options, a, b, by):
    document = ridgeline(options, "compare", "--ops", a, b, "--by", by, "--store", options.store, "--json")
    heads = {"op": ["op"], "step": ["layer", "op", "phase"]}[by]
    lines = [f"A: {document['a']['name']}; B: {document['b']['name']}", ""]
    lines += [f"warning: {warning}" for warning in document["warnings"]]
    lines.append("| " + " | ".join(heads + ["A, ms", "B, ms", "B - A, ms", "A/B", "steps A:B"]) + " |")
    lines.append("|" + "---|" * len(heads) + "--:|" * 5)
    for row in document["rows"]:
        names = [row[head] for head in heads]
        if not any(names):
            names[0] = row["kind"]
        elif row["kind"] != "both":
            names[0] += f" ({row['kind']})"
        cells = names + [number(row["a_ms"]), number(row["b_ms"]), f"{row['difference_ms']:+.4f}",
                         number(row["speedup"], 2), f"{row['steps_a']}:{row['steps_b']}"]
        lines.append("| " + " | ".join(cells) + " |")
    total = ["total"] + [""] * (len(heads) - 1)
    total += [number(document["a"]["ms"]), number(document["b"]["ms"]), f"{document['difference_ms']:+.4f}",
              number(document["speedup"], 2), ""]
    lines.append("| " + " | ".join(total) + " |")
    return lines + [""]


def sections(options):
    if options.runs:
        return table(options, *options.runs, "op") + table(options, *options.runs, "step")
    lines = []
    for model in options.models.split(","):
        for fusion in (True, False):
            how = "as the backends fuse it" if fusion else "every op a step (--no-pass fusion)"
            lines += [f"## {model}, batch {options.batch}, {how}", ""]
            labels = [f"op-speedups {model} {'fused' if fusion else 'unfused'} {side}" for side in ("A", "B")]
            measure(options, model, options.cpu, "cpu", fusion, labels[0])
            measure(options, model, options.gpu, options.device, fusion, labels[1])
            names = [f"label={label}" for label in labels]
            lines += table(options, *names, "op") + table(options, *names, "step")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="mlp,mnist_cnn")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--cpu", default="native", help="backend of side A")
    parser.add_argument("--gpu", default="auto", help="backend of side B")
    parser.add_argument("--device", default="cuda:0", help="of side B")
    parser.add_argument("--store", help="where runs are kept [a file that goes away]")
    parser.add_argument("--runs", nargs=2, metavar=("A", "B"), help="stored runs instead of measuring")
    parser.add_argument("--program", default=str(ROOT / "build/ridgeline"))
    parser.add_argument("--out", type=pathlib.Path, help="[standard output]")
    options = parser.parse_args()
    if options.runs and not options.store:
        parser.error("--runs needs --store")
    with tempfile.TemporaryDirectory() as folder:
        options.store = options.store or f"{folder}/op_speedups.db"
        lines = ["# Op by op: A against B", "", f"`python3 bench/op_speedups.py {' '.join(sys.argv[1:])}`, "
                 f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}. A/B: how many times as fast B is.", ""]
        text = "\n".join(lines + sections(options))
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
