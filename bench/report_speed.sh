#!/usr/bin/env bash
# How long a report of a large store takes, and how large it gets. report_speed.sh [BUILD [SAMPLES]]
set -euo pipefail
build=$(cd "${1:-build}" && pwd)
samples=${2:-200000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$build/tools/report_store" store.db "$samples"
printf 'store: %s bytes, %s samples wanted\n' "$(stat -c %s store.db)" "$samples"
for formats in html html,markdown,latex,csv html,markdown,latex,csv,svg html,markdown,latex,csv,svg,png; do
  # Wall time, and time of the processors: the second tells more on a busy machine.
  TIMEFORMAT='%R %U %S'
  times=$( { time "$build/ridgeline" report --store store.db --out report --format "$formats" >output; } 2>&1)
  read -r wall user system <<<"$times"
  printf '%-36s %6.2f s, processors %s s + %s s, page %s bytes, all %s bytes\n' "$formats" "$wall" "$user" "$system" \
    "$(stat -c %s report/index.html)" "$(du -sb report | cut -f1)"
done
tail -n 2 output
