#!/usr/bin/env bash
# The one entry point to building, testing and trying libredlock: ./build.sh help
#
# Every verb works as the first command in a fresh clone, on a machine with Go, a C compiler and
# Python 3.11 or newer: it installs what else it needs (Debian packages if it runs as root, Python
# packages into .venv/, Go tools into build/tools/) or says what to install.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$PWD

export GOWORK=off CGO_ENABLED=1
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PYTHONDONTWRITEBYTECODE=1
export TALLY="$root/build/results" # what the suites of ./build.sh test did
# shellcheck source=.ci/need.sh
source .ci/need.sh # say, die, need_...
# shellcheck source=.ci/checks.sh
source .ci/checks.sh # run_checks

do_help() {
    cat <<'END'
usage: ./build.sh VERB

  demo     a Python, a Node, a C and a Go program fight over one lock, on an embedded Redis
           (REDLOCK_NODES=redis://...[,redis://...]: on yours); see also: demo -help
  bench    what locks cost: uncontended, in Node (node), and from a release to the next waiter (handoff), beside other
           libraries; bench NAME [FLAG...] runs one
  test     everything below, and all tests on real Redis servers that they start themselves
  peers    other lock libraries (redsync, redislock, redis-py, node-redlock, redis-semaphore, Redisson), installed from
           their registries as tests/peers pins them, hold the same locks as we do; also part of test
  check    formatting, static analysis and types of Go, Python, JavaScript, C and shell
  lib      build/lib/libredlock.so with libredlock-core.so, build/include/redlock.h and
           build/lib/pkgconfig/redlock.pc
  wasm     build/redlock.wasm
  python   .venv/ with the Python package, installed from this checkout
  node     bindings/node with what it needs, ready to be imported
  dist     build/dist/: a Python wheel, an npm package and an archive of the C library
  help     this text
END
}

do_demo() {
    build_libraries
    build_plugin
    prepare_node
    say "building the four programs"
    mkdir -p build/demo
    cc -std=c99 -O1 -Wall -Wextra -Werror -pedantic -o build/demo/worker-c tests/demo/workers/c/worker.c \
        -Ibuild/include -Lbuild/lib "-Wl,-rpath,$root/build/lib" -lredlock
    go -C tests build -o "$root/build/demo/worker-go" ./demo/workers/go
    go -C tests build -o "$root/build/demo/demo" ./demo
    if [[ ${1-} != --build-only ]]; then
        cd - >/dev/null # to show paths as the caller sees them
        exec "$root/build/demo/demo" -root "$root" "$@"
    fi
}

do_lib() {
    build_libraries
    printf '%s\n' build/lib/*.so build/include/*.h build/lib/pkgconfig/*.pc
}

do_wasm() {
    build_plugin
    printf '%s\n' build/redlock.wasm
}

do_python() {
    build_libraries
    make_venv
    say "try: .venv/bin/python -c 'import libredlock; help(libredlock)'"
}

do_node() {
    build_plugin
    prepare_node
    say "try: node -e 'import(\"./bindings/node/src/index.js\").then(console.log)'"
}

do_check() {
    need_go
    need shellcheck shellcheck cc gcc c++ g++
    build_libraries
    make_venv
    prepare_node
    need_staticcheck
    run_checks || die "${#failed_checks[@]} checks failed$(printf ': %s' "${failed_checks[@]}")"
    say "$passed_checks checks passed"
}

do_dist() {
    build_libraries
    build_plugin
    make_venv
    need_node
    rm -rf build/dist
    mkdir -p build/dist
    make_wheel
    make_archive
    say "packing the npm package"
    # shellcheck source=bindings/node/lib.sh
    source bindings/node/lib.sh
    make_npm "$root/build" "$root/build/dist"
    printf '%s\n' build/dist/*
}

do_peers() {
    need redis-server redis-server
    build_libraries
    make_venv
    build_plugin
    prepare_node
    prepare_peers
    export REDLOCK_STRICT=1 REDLOCK_BUILD="$root/build" REDLOCK_PYTHON="$root/.venv/bin/python"
    go -C tests test -count=1 -timeout 5m -v ./peers
}

do_bench() {
    local names=(uncontended node handoff) flags=() name
    if (($# > 0)); then names=("$1") flags=("${@:2}"); fi
    need redis-server redis-server
    build_libraries
    make_venv
    build_plugin
    prepare_node
    for name in "${names[@]}"; do
        case $name in
        uncontended)
            need_hiredis
            go -C tests run ./bench "${flags[@]}"
            ;;
        node) (cd bindings/node && node bench/bench.js "${flags[@]}") ;;
        handoff)
            prepare_peers
            go -C tests run ./bench/handoff "${flags[@]}"
            ;;
        *) die "bench: there are uncontended, node and handoff, not $name" ;;
        esac
    done
}

do_test() {
    need_go
    need redis-server redis-server pkg-config pkg-config valgrind valgrind shellcheck shellcheck cc gcc c++ g++
    do_demo --build-only
    do_dist
    prepare_node
    prepare_peers
    need_staticcheck
    go -C tests build -o "$root/build/tools/tally" ./tally

    export REDLOCK_STRICT=1 # a missing tool is a failure, not a skip
    export REDLOCK_BUILD="$root/build" REDLOCK_PYTHON="$root/.venv/bin/python"
    local failed=0 started=$SECONDS raced=(./core ./core/driver ./core/redlock)
    run_checks || failed=1
    tally_checks $((SECONDS - started)) >"$TALLY"
    suite go "core, with the race detector" go test -json -count=1 -timeout 10m -race "${raced[@]}" || failed=1
    # shellcheck disable=SC2046 # import paths have no spaces
    suite go "the rest of the root module" go test -json -count=1 -timeout 10m $(packages_but "${raced[@]}") || failed=1
    suite go "tests/, in all languages" go -C tests test -json -count=1 -timeout 12m ./... || failed=1
    suite pytest "Python" .venv/bin/python -m pytest -q -p no:cacheprovider bindings/python/tests || failed=1
    suite node "Node" node --test --expose-gc bindings/node/test/*.test.js || failed=1
    build/tools/tally sum && ((failed == 0))
}

suite() { build/tools/tally "$@"; }

# packages_but lists the root module's packages, without some.
packages_but() { go list ./... | grep -vxF "$(go list "$@")"; }

# ---------------------------------------------------------------- building

build_libraries() {
    need_go
    need_cc
    say "building libredlock.so"
    # shellcheck source=capi/lib.sh
    source capi/lib.sh
    build_lib build
}

build_plugin() {
    need_go
    say "building redlock.wasm"
    # shellcheck source=wasm/lib.sh
    source wasm/lib.sh
    build_wasm build
}

# prepare_node installs what the npm package and its tests need, pinned by its lock file.
prepare_node() {
    need_node
    say "preparing the npm package"
    # shellcheck source=bindings/node/lib.sh
    source bindings/node/lib.sh
    make_node "$root/build"
}

# prepare_peers installs the libraries of others that tests compare with.
prepare_peers() {
    need_python
    need_node
    need javac default-jdk-headless mvn maven
    say "installing other lock libraries"
    # shellcheck source=tests/peers/lib.sh
    source tests/peers/lib.sh
    install_peers "$root/build"
}

# make_venv makes .venv with the test tools, all pinned by hash, and the package from this checkout.
make_venv() {
    need_python
    local wanted have=.venv/redlock-requirements site
    wanted=$(python3 --version; cat bindings/python/requirements-test.txt)
    if [[ ! -x .venv/bin/python || $(cat "$have" 2>/dev/null) != "$wanted" ]] || ! .venv/bin/python -c ''; then
        say "making .venv"
        rm -rf .venv
        python3 -m venv .venv
        .venv/bin/python -m pip install --quiet --require-hashes -r bindings/python/requirements-test.txt
        printf '%s\n' "$wanted" >"$have"
    fi
    site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$root/bindings/python/src" >"$site/libredlock.pth"
    .venv/bin/python -c 'import libredlock'
}

# make_wheel builds build/dist/*.whl, with both libraries in it.
make_wheel() {
    say "building the wheel"
    REDLOCK_BUILD_LIB="$root/build/lib" .venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation \
        --wheel-dir build/dist ./bindings/python
}

# make_archive packs the C library: unpack it anywhere and point PKG_CONFIG_PATH at its lib/pkgconfig.
make_archive() {
    say "packing the C library"
    local version name
    version=$(sed -n 's/^Version: //p' build/lib/pkgconfig/redlock.pc)
    name=libredlock-$version-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)
    mkdir -p "build/stage/$name"
    cp -R build/include build/lib capi/examples LICENSE README.md "build/stage/$name/"
    tar -C build/stage -czf "build/dist/$name.tar.gz" "$name"
    rm -rf build/stage
}

verb=${1-help}
[[ $(type -t "do_$verb") == function ]] || { do_help >&2; exit 2; }
"do_$verb" "${@:2}"
