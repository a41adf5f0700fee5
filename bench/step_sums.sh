#!/usr/bin/env bash
# Do the times of the plan's steps add up to the step? For all networks and CPU backends: the sum over whole iterations that took
# turns with the timed ones (step_sum_share). Within 5% is wanted.
#
#   bench/step_sums.sh [OUT.md]                       the table goes to standard output too
#   PROGRAM=build/ridgeline IMAGE=64 BATCH=8          as these say
#   MODELS="mlp mnist_cnn" BACKENDS=native,onednn     fewer of them
#
# Takes some minutes; nothing else should run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${PROGRAM:-build/ridgeline}
models=${MODELS:-mlp mnist_cnn resnet18 resnet50 mobilenet_v2 squeezenet1_0 densenet121}
backends=${BACKENDS:-reference,native,onednn,auto}
image=${IMAGE:-64} batch=${BATCH:-8}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

for model in $models; do
  size=(--image "3x${image}x$image" --batch "$batch")
  case $model in mlp | mnist_cnn) size=(--batch 64) ;; esac
  echo "$model" >&2
  "$program" bench "$model" --backend "$backends" "${size[@]}" --warmup 3 --iterations 10 --no-split --telemetry 0 --no-store --json \
    2>/dev/null >"$folder/$model.json"
done

python3 - "$folder" "$program" "${1:-}" $models <<'PYTHON'
import json, os, pathlib, sys

folder, program, out, *models = sys.argv[1:]
cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown processor")
lines = [
    "# The sum of the steps against the step",
    "",
    f"{cpu}, {len(os.sched_getaffinity(0))} cores. Load at the end: {os.getloadavg()[0]:.1f}. `bench/step_sums.sh`",
    "Each step is timed where it stands; passes with clocks take turns with whole iterations. Share: sum of the steps over a whole iteration.",
    "",
    "| network | image | batch | backend | steps | sum | share |",
    "|---|---|---|---|---|---|---|",
]
worst = None
for model in models:
    for row in json.loads((pathlib.Path(folder) / f"{model}.json").read_text())["results"]:
        share = row["step_sum_share"]
        lines.append(f"| {row['model']} | {row['image']} | {row['batch']} | {row['backend']} | {len(row['kernels'])} | "
                     + (f"{row['step_sum_ms']:.3f} ms | {100 * share:.1f}% |" if share else "n/a | n/a |"))
        if share and (worst is None or abs(share - 1) > abs(worst[0] - 1)):
            worst = (share, f"{row['model']} on {row['backend']}")
if worst:
    lines += ["", f"Farthest from the whole: {worst[1]}, {100 * worst[0]:.1f}%."]
text = "\n".join(lines) + "\n"
print(text, end="")
if out:
    pathlib.Path(out).write_text(text)
PYTHON
