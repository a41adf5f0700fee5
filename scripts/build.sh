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

# A terminal sees the build's progress, for a first build takes minutes.
compile() {
  if [[ -t 2 ]]; then
    cmake --build "$@" >&2
  else
    quietly "$1/build.log" cmake --build "$@"
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
