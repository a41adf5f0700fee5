#!/usr/bin/env bash
# What scripts/setup.sh finds missing, with a package database that has heard of few packages: as on a fresh machine.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd -P)
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

# Like the real one it ends with an error when it does not know a package.
cat >"$folder/dpkg-query" <<'FAKE'
#!/usr/bin/env bash
printf 'installed:g++ not-installed:cmake '
exit 1
FAKE
chmod +x "$folder/dpkg-query"

found=$(PATH=$folder:$PATH bash -c 'set -euo pipefail
  source "$1/scripts/setup.sh"
  mapfile -t missing < <(missing_packages g++ cmake libnew-dev)
  printf "%s " "${missing[@]}"' _ "$root")
[[ $found == "cmake libnew-dev " ]] || { echo "expected 'cmake libnew-dev', found '$found'" >&2; exit 1; }
