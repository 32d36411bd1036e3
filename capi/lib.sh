# shellcheck shell=bash
# lib.sh - builds the C library; to be sourced.
#
# build_lib DIR makes DIR/lib/libredlock.so.0 (and libredlock.so, which links to it), DIR/lib/libredlock-core.so,
# DIR/include/redlock.h and DIR/lib/pkgconfig/redlock.pc. The folder can be moved: nothing in it names its place.
# Needs go and cc. CFLAGS is added to the C compiler's flags, GOFLAGS is Go's own; and for the tests:
# build_front DIR makes all but the core; build_core FILE [flag of go build ...] the core alone.

capi=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

build_lib() {
    build_front "$1" && build_core "$1/lib/libredlock-core.so"
}

build_front() {
    local lib=$1/lib version
    version=$(sed -n 's/^#define REDLOCK_VERSION "\(.*\)"$/\1/p' "$capi/redlock.h") || return
    mkdir -p "$lib/pkgconfig" "$1/include" || return
    # A file of its own, so that a process that has the old one mapped keeps it.
    # shellcheck disable=SC2086 # CFLAGS is a list
    cc -std=gnu99 -O2 -Wall -Wextra -Werror -pedantic -fPIC -fvisibility=hidden ${CFLAGS-} \
        -shared -Wl,-soname,libredlock.so.0 "-Wl,--version-script=$capi/redlock.map" \
        -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,now \
        -o "$lib/libredlock.so.0.new" "$capi/redlock.c" "$capi/loader.c" -ldl -pthread || return
    mv "$lib/libredlock.so.0.new" "$lib/libredlock.so.0" &&
        ln -sf libredlock.so.0 "$lib/libredlock.so" &&
        cp "$capi/redlock.h" "$1/include/redlock.h" &&
        sed "s/@VERSION@/$version/" "$capi/redlock.pc.in" >"$lib/pkgconfig/redlock.pc"
}

# The generated header that Go writes beside a C library is of no use: redlock.h is the contract.
build_core() {
    local file
    file=$(realpath -m "$1") || return
    mkdir -p "$(dirname "$file")" &&
        (cd "$capi" && CGO_ENABLED=1 go build -buildmode=c-shared -trimpath "${@:2}" \
            -ldflags "-s -w -extldflags '\"-Wl,--version-script=$capi/core.map\"'" -o "$file.new.so" .) &&
        rm -f "$file.new.h" && mv "$file.new.so" "$file"
}
