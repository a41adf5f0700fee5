# Configures and builds the presets of CMakePresets.json. Sourced by ./run and ./test, which set $root.
# shellcheck shell=bash disable=SC2154

# quietly LOG COMMAND...: the output goes into LOG, and is shown on standard error only when the command fails.
quietly() {
  local log=$1
  shift
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
}

# A first build takes minutes. A terminal sees every step of it, a file one line for each tenth.
compile() {
  local log=$1/build.log
  if [[ -t 2 ]]; then
    cmake --build "$@" >&2
    return
  fi
  if ! cmake --build "$@" 2>&1 | tee "$log" | awk -F'[][/]' '
      /^\[[0-9]+\/[0-9]+\]/ && $3 >= 20 && int(10 * $2 / $3) > shown {
        shown = int(10 * $2 / $3); printf "ridgeline: %d of %d steps built\n", $2, $3; fflush() }' >&2; then
    cat "$log" >&2
    return 1
  fi
}

# build_preset PRESET FOLDER TARGET...: configures and builds under a lock, so that two calls may overlap.
build_preset() {
  local preset=$1 folder=$2
  shift 2
  mkdir -p "$folder"
  (
    cd "$root" || exit 1
    if command -v flock >/dev/null; then flock 9; fi
    export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

    # A build folder that was copied along with the sources still points at the old place.
    local fresh=()
    if [[ -f $folder/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
      fresh=(--fresh)
    fi
    quietly "$folder/configure.log" cmake --preset "$preset" "${fresh[@]}" &&
      compile "$folder" --target "$@"
  ) 9>"$folder/.lock"
}
