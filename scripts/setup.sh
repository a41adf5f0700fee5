# Installs the Debian packages Ridgeline needs. Sourced by ./run and ./test.
# shellcheck shell=bash disable=SC2034

build_packages=(
  g++ cmake ninja-build ccache
  libdnnl-dev libhwy-dev libcli11-dev libfmt-dev nlohmann-json3-dev
  zlib1g-dev libjpeg62-turbo-dev libpng-dev libcurl4-openssl-dev libssl-dev libarchive-dev
  libsqlite3-dev libtomlplusplus-dev libonnx-dev libprotobuf-dev
  librsvg2-bin dataset-fashion-mnist opencl-c-headers
)
test_packages=(
  libgtest-dev libbenchmark-dev clang-format
  python3 python3-torch python3-torchvision python3-onnx python3-numpy libopenblas0-pthread
  python3-pandas python3-nbclient python3-ipykernel python3-tqdm
  tar xz-utils chromium chromium-driver python3-selenium
  ocl-icd-libopencl1 pocl-opencl-icd oclgrind
  libopenmpi-dev openmpi-bin
)

fail() {
  printf 'ridgeline: %s\n' "$*" >&2
  exit 1
}

# Prints those of the named packages that are not installed.
missing_packages() {
  local installed name
  # A package that dpkg has never heard of makes it end with an error, and the list of the others is still right.
  installed=" $(dpkg-query -W -f='${db:Status-Status}:${Package} ' "$@" 2>/dev/null || true)"
  for name in "$@"; do
    [[ $installed == *" installed:$name "* ]] || printf '%s\n' "$name"
  done
}

# Without Debian's tools there is no list of packages, so the commands decide.
require_commands() {
  local name
  for name in g++ cmake ninja; do
    command -v "$name" >/dev/null ||
      fail "'$name' is not installed. Install what these Debian packages hold: $*"
  done
}

# install_packages NAME...: makes sure that the packages are there; costs some milliseconds when they are.
install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    require_commands "$@"
    return
  fi
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0

  if ((EUID != 0)); then
    command -v sudo >/dev/null ||
      fail "packages are missing and this user is neither root nor has sudo. As root, run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  printf 'ridgeline: installing %s\n' "${missing[*]}" >&2
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600)
  "${apt[@]}" update >&2 || printf 'ridgeline: the package lists could not be refreshed; using those at hand\n' >&2
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >&2 ||
    fail "apt-get could not install: ${missing[*]}"
}
