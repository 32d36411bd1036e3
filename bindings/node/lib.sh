# shellcheck shell=bash
# lib.sh - prepares and packs the npm package; to be sourced.
#
# make_node installs what the package and its tests need, and a newer Node for those that need one, below BUILD/node.
# make_npm DIR makes DIR/libredlock-VERSION.tgz, with BUILD/redlock.wasm in it. Both need npm, and BUILD is DIR of build_wasm.

node_package=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
node_newer=24.19.0 # which has `await using`

make_node() {
    local build=$1 wanted have=$node_package/node_modules/.redlock-installed newer
    wanted=$(node --version && cat "$node_package/package-lock.json") || return
    if [[ $(cat "$have" 2>/dev/null) != "$wanted" ]]; then
        (cd "$node_package" && npm ci --silent --no-audit --no-fund) && printf '%s\n' "$wanted" >"$have" || return
    fi
    newer=node-$(node -p 'process.platform + "-" + process.arch') || return
    if [[ $("$build/node/node_modules/$newer/bin/node" --version 2>/dev/null) != "v$node_newer" ]]; then
        mkdir -p "$build/node" && npm install --silent --no-audit --no-fund --no-save --prefix "$build/node" "$newer@$node_newer" || return
    fi
    export REDLOCK_NODE_NEWER=$build/node/node_modules/$newer/bin/node
}

make_npm() {
    local build=$1 dir=$2 stage
    stage=$(mktemp -d) || return
    mkdir -p "$dir" &&
        cp -R "$node_package/src" "$node_package/package.json" "$node_package/README.md" "$stage/" &&
        cp "$node_package/../../LICENSE" "$build/redlock.wasm" "$stage/" &&
        (cd "$stage" && npm pkg delete devDependencies scripts) &&
        npm pack --silent --pack-destination "$dir" "$stage"
    local status=$?
    rm -rf "$stage"
    return "$status"
}
