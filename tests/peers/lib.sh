# shellcheck shell=bash
# lib.sh - installs the libraries that tests/peers and tests/bench/handoff compare with; to be sourced.
#
# install_peers BUILD installs them as their lock files pin them: Python's below BUILD/peers, Node's beside package.json, and Go's where
# Go keeps modules. Real Redisson is to come the same way: a folder java/ with a driver, its jars pinned here.

peers_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

install_peers() {
    install_python_peers "$1/peers/venv" && install_node_peers && go -C "$peers_folder/go" mod download
}

install_python_peers() {
    local venv=$1 lock=$peers_folder/python/requirements.txt wanted
    wanted=$(python3 --version && cat "$lock") || return
    [[ $(cat "$venv/installed" 2>/dev/null) != "$wanted" ]] || return 0
    rm -rf "$venv"
    python3 -m venv "$venv" && "$venv/bin/python" -m pip install --quiet --require-hashes -r "$lock" &&
        printf '%s\n' "$wanted" >"$venv/installed"
}

install_node_peers() {
    local folder=$peers_folder/node have wanted
    have=$folder/node_modules/.installed
    wanted=$(cat "$folder/package-lock.json") || return
    [[ $(cat "$have" 2>/dev/null) != "$wanted" ]] || return 0
    (cd "$folder" && npm ci --silent --no-audit --no-fund) && printf '%s\n' "$wanted" >"$have"
}
