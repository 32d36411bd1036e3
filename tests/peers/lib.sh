# shellcheck shell=bash
# lib.sh - installs the libraries that tests/peers and tests/bench/handoff compare with; to be sourced.
#
# install_peers BUILD installs them as their lock files pin them: Python's below BUILD/peers, Node's beside package.json, and Go's where
# Go keeps modules, and Java's jars and driver, for each version of Redisson, below BUILD/peers/java.

peers_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

install_peers() {
    install_python_peers "$1/peers/venv" && install_node_peers && install_java_peers "$1/peers/java" &&
        go -C "$peers_folder/go" mod download
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

# Redisson before its unlock kept what came of it, the last 3, and 4.
redisson_versions=(3.17.0 3.52.0 4.7.0)

install_java_peers() {
    local folder=$1 source=$peers_folder/java wanted version
    wanted=$(javac -version 2>&1 && cat "$source/jars.sha256" "$source/Driver.java") || return
    [[ $(cat "$folder/installed" 2>/dev/null) != "$wanted" ]] || return 0
    rm -rf "$folder"
    for version in "${redisson_versions[@]}"; do
        mvn --quiet --batch-mode --file "$source/pom.xml" -Dredisson="$version" -DoutputDirectory="$folder/$version" \
            org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies || return
    done
    (cd "$folder" && sha256sum --quiet --strict --check "$source/jars.sha256") || return
    for version in "$folder"/*/; do
        javac -Xlint:all -Werror -proc:none -cp "$version*" -d "$version" "$source/Driver.java" || return
    done
    printf '%s\n' "$wanted" >"$folder/installed"
}
