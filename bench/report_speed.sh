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
  best=''
  for _ in 1 2 3; do
    begin=$(date +%s.%N)
    "$build/ridgeline" report --store store.db --out report --format "$formats" >output
    took=$(awk "BEGIN { print $(date +%s.%N) - $begin }")
    if [[ -z $best ]] || awk "BEGIN { exit !($took < $best) }"; then best=$took; fi
  done
  printf '%-36s %6.2f s, page %s bytes, all %s bytes\n' "$formats" "$best" \
    "$(stat -c %s report/index.html)" "$(du -sb report | cut -f1)"
done
tail -n 2 output
