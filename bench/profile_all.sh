#!/usr/bin/env bash
# Profiles of all networks on all CPU backends: do the tables add up to the iteration, what does watching cost, where does the time go?
#
#   bench/profile_all.sh [OUT.md]                     the table goes to standard output too
#   PROGRAM=build/ridgeline IMAGE=32 BATCH=4          as these say
#   MODELS="mlp mnist_cnn" BACKENDS="native onednn"   fewer of them
#   BY="op layer phase kernel"                        the tables that are added up
#
# Ends with an error when a table's rows, or the breakdown, do not add up to the iteration to within a millionth.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${PROGRAM:-build/ridgeline}
models=${MODELS:-mlp mnist_cnn resnet18 resnet50 mobilenet_v2 squeezenet1_0 densenet121}
backends=${BACKENDS:-reference native onednn auto}
by_all=${BY:-op layer phase kernel}
image=${IMAGE:-32} batch=${BATCH:-4}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

for model in $models; do
  size=(--image "3x${image}x$image" --batch "$batch")
  case $model in mlp | mnist_cnn) size=(--batch 64) ;; esac
  for backend in $backends; do
    for by in $by_all; do
      echo "$model $backend by $by" >&2
      "$program" profile "$model" --backend "$backend" "${size[@]}" --by $by --steps 3 --telemetry 0 --no-roof --no-store --json \
        2>/dev/null >"$folder/$model $backend $by.json"
    done
  done
done

python3 - "$folder" "${1:-}" "$models" "$backends" "$by_all" <<'PYTHON'
import json, os, pathlib, sys

folder, out, models, backends, by_all = sys.argv[1:]
cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown processor")
lines = [
    "# Profiles of all networks on all CPU backends",
    "",
    f"{cpu}, {len(os.sched_getaffinity(0))} cores. Load at the end: {os.getloadavg()[0]:.1f}. `bench/profile_all.sh`",
    "Off: how far the rows of these tables, and the breakdown, are from the iteration at most. Watching costs: the "
    "watched iteration against others of the same run.",
    "",
    f"| network | image | batch | backend | iteration | rows by {', '.join(by_all.split())} | off | watching costs | most time |",
    "|---|---|---|---|---|---|---|---|---|",
]


def short(name):  # of a kernel that does the whole step the ops are many
    ops = name.split("+")
    return name if len(ops) <= 3 else f"{ops[0]}+…+{ops[-1]} ({len(ops)} ops)"


wrong = []
for model in models.split():
    for backend in backends.split():
        off, counts = 0.0, []
        for by in by_all.split():
            profile = json.loads((pathlib.Path(folder) / f"{model} {backend} {by}.json").read_text())
            step = profile["step_ms"]
            for parts in ([row["ms"] for row in profile["table"]], profile["breakdown"].values()):
                off = max(off, abs(sum(parts) / step - 1.0))
            counts.append(len(profile["table"]))
            if by == by_all.split()[0]:
                first, most = profile, max(profile["table"], key=lambda row: row["ms"])
        if off > 1e-6:
            wrong.append(f"{model} on {backend}: off by {off:.2g}")
        overhead = first["overhead_share"]
        lines.append(f"| {first['model']} | {first['image']} | {first['batch']} | {backend} | {first['step_ms']:.3f} ms | "
                     f"{', '.join(map(str, counts))} | {off:.0e} | {'n/a' if overhead is None else f'{100 * overhead:+.1f}%'} | "
                     f"{short(most['name'])}, {100 * most['share']:.0f}% |")
text = "\n".join(lines) + "\n"
print(text, end="")
if out:
    pathlib.Path(out).write_text(text)
if wrong:
    sys.exit("\n".join(wrong))
PYTHON
