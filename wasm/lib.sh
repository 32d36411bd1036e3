# shellcheck shell=bash
# lib.sh - builds the plugin; to be sourced.
#
# build_wasm DIR makes DIR/redlock.wasm. Needs go alone; flags for go build may follow, for the tests.

wasm=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

build_wasm() {
    local file
    file=$(realpath -m "$1")/redlock.wasm || return
    mkdir -p "$1" &&
        (cd "$wasm" && GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 go build -buildmode=c-shared -trimpath -ldflags="-s -w" \
            "${@:2}" -o "$file.new" .) && mv "$file.new" "$file"
}
