#!/usr/bin/env bash
# Names everything this machine lacks, in one message with the command to type; as root it installs
# what apt has, and makes the user that servers run as. A tool found on PATH is taken as it is.
#
# usage: tools/requirements.sh run|test|nightly [PYTHON]
#   run   what building and `make demo` need       test   and what the tests need
#   nightly   and what `make nightly` needs
set -euo pipefail

wanted=${1:?run, test or nightly}
python=${2:-}
rust_least=$(sed -nE 's/^rust-version = "([0-9.]+)"/\1/p' "$(dirname "$0")/../Cargo.toml")
packages=()
by_hand=()

libraries=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p)
has_library() { [[ $libraries == *"$1"* ]]; }
has_venv() { [ -x .venv/bin/python ] || "$python" -c 'import venv, ensurepip' 2>/dev/null; }
older() { [ "$1" != "$2" ] && [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

check_python() {
    if [ -z "$python" ]; then
        by_hand+=("Python 3.11 or newer (found: $(python3 --version 2>&1 || true)); name another with PYTHON=…")
    elif ! has_venv; then
        packages+=(python3-venv)
    fi
}

check_rust() {
    local found
    if ! found=$(cargo --version 2>/dev/null | awk '{print $2}') || [ -z "$found" ]; then
        by_hand+=("Rust $rust_least or newer: see https://rustup.rs, then open a new shell")
    elif older "$found" "$rust_least"; then
        by_hand+=("Rust $rust_least or newer (found: $found): rustup update stable")
    fi
}

check_python
check_rust
command -v cc >/dev/null || packages+=(gcc libc6-dev)
command -v mvn >/dev/null || packages+=(maven)
has_library libaio.so.1 || packages+=(libaio1)
has_library libnuma.so.1 || packages+=(libnuma1)
if [ "$wanted" != run ]; then
    command -v sysbench >/dev/null || packages+=(sysbench)
    command -v chromium-headless-shell chromium >/dev/null || packages+=(chromium-headless-shell)
    command -v npm >/dev/null || packages+=(npm)
    command -v perf >/dev/null || packages+=(linux-perf)
fi
if [ "$wanted" = nightly ]; then
    command -v podman >/dev/null || packages+=(podman runc iptables)
fi

install="apt-get install -y --no-install-recommends ${packages[*]-}"
if [ ${#packages[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing: ${packages[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    if ! said=$({ apt-get update && $install; } 2>&1); then
        echo "$said" >&2
        by_hand+=("${packages[*]}: '$install' failed, see above")
    fi
    packages=()
fi

# Servers of a lab that is root run as a user of their own, as whom nothing else runs.
if [ "$(id -u)" = 0 ] && ! id -u dbdyno-server >/dev/null 2>&1 && command -v useradd >/dev/null; then
    useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin dbdyno-server ||
        echo "the user dbdyno-server cannot be made: servers run as nobody" >&2
fi

if [ ${#packages[@]} -gt 0 ] || [ ${#by_hand[@]} -gt 0 ]; then
    echo "dbdyno needs what this machine lacks:" >&2
    for thing in "${by_hand[@]}"; do echo "  $thing" >&2; done
    [ ${#packages[@]} -eq 0 ] || printf '  %s\n  type: sudo %s\n' "${packages[*]}" "$install" >&2
    exit 1
fi
