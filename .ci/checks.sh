# Sourced by build.sh: the checks that need no test to run.
# shellcheck shell=bash

root=${root:-$PWD}
export MYPY_CACHE_DIR="$root/build/mypy" RUFF_CACHE_DIR="$root/build/ruff"

passed_checks=0
failed_checks=()

# run_checks runs them all, and fails if one does.
run_checks() {
    passed_checks=0 failed_checks=()
    say "checking"
    check "gofmt" go_is_formatted
    check "go vet" go vet ./...
    check "go vet, tests/" go -C tests vet ./...
    check "go vet, tests/peers/go" go -C tests/peers/go vet ./...
    check "staticcheck" staticcheck_in .
    check "staticcheck, tests/" staticcheck_in tests
    check "staticcheck, tests/peers/go" staticcheck_in tests/peers/go
    check "go vet, wasm" on_wasm go vet ./wasm/...
    check "staticcheck, wasm" on_wasm build/tools/staticcheck -checks inherit,-U1000 ./wasm/... # it does not know exports
    check "all but capi builds without cgo" builds_without_cgo
    check "ruff" ruff_check
    check "ruff format" ruff_format
    check "mypy" mypy_package
    check "mypy, tests/" mypy_tests
    check "tsc, the npm package" node_types
    check "redlock.h is C99" cc -std=c99 "${c_warnings[@]}" -x c capi/redlock.h
    check "redlock.h is C++" c++ -std=c++11 "${c_warnings[@]}" -x c++ capi/redlock.h
    check "C programs" c_programs
    check "shell syntax" shell_is_valid
    check "shellcheck" shellcheck_sources
    ((${#failed_checks[@]} == 0))
}

check() {
    local name=$1 output
    if output=$("${@:2}" 2>&1); then
        printf 'ok    %s\n' "$name"
        passed_checks=$((passed_checks + 1))
    else
        printf 'FAIL  %s\n%s\n' "$name" "$output"
        failed_checks+=("$name")
    fi
}

# tally_checks SECONDS prints what the checks did, as tests/tally reads it.
tally_checks() {
    local names=''
    ((${#failed_checks[@]} == 0)) || names=$(printf ',"%s"' "${failed_checks[@]}")
    printf '{"suite":"checks","passed":%d,"failed":%d,"seconds":%d,"failures":[%s]}\n' \
        "$passed_checks" "${#failed_checks[@]}" "$1" "${names#,}"
}

# sources NAME... lists our files of these names, each ended by a NUL.
sources() {
    local names=(-false) name
    for name; do names+=(-o -name "$name"); done
    find . \( -path ./.git -o -path ./build -o -path ./.venv -o -name node_modules \) -prune -o \
        -type f \( "${names[@]}" \) -print0
}

go_is_formatted() {
    local files
    files=$(sources '*.go' | xargs -0 gofmt -l) || return
    printf '%s' "$files"
    [[ -z $files ]]
}

staticcheck_in() { (cd "$1" && "$root/build/tools/staticcheck" ./...); }

on_wasm() { GOOS=wasip1 GOARCH=wasm "$@"; }

builds_without_cgo() {
    local packages
    packages=$(go list ./... | grep -v '/capi$') && CGO_ENABLED=0 xargs go build -o /dev/null <<<"$packages"
}

# The rules stand in the package's pyproject.toml. The programs under tests/ keep to them too, but for those that
# it spares its own tests; in each folder on its own, since a program's imports are found from where it stands.
ruff_check() {
    (cd bindings/python && "${ruff[@]}" check --quiet) &&
        in_python_folders "${ruff[@]}" check --quiet "${pyproject[@]}" --extend-ignore D,S
}

ruff_format() {
    (cd bindings/python && "${ruff[@]}" format --quiet --diff) &&
        in_python_folders "${ruff[@]}" format --quiet --diff "${pyproject[@]}"
}

ruff=("$root/.venv/bin/python" -m ruff)
pyproject=(--config "$root/bindings/python/pyproject.toml")

# in_python_folders runs a command in every folder below tests/ with Python programs.
in_python_folders() {
    local folder status=0
    while read -r folder; do
        (cd "$folder" && "$@") || status=1
    done < <(find tests -name '*.py' -printf '%h\n' | sort -u)
    return "$status"
}

mypy_package() { (cd bindings/python && "$root/.venv/bin/python" -m mypy --strict); }

# Each alone, since programs in different folders have the same name.
mypy_tests() {
    find tests -name '*.py' -print0 |
        MYPYPATH=bindings/python/src xargs -0 -n 1 .venv/bin/python -m mypy --strict --no-error-summary
}

# Its JavaScript, its declarations and what applications write.
node_types() { (cd bindings/node && node_modules/.bin/tsc); }

c_warnings=(-Wall -Wextra -Wpedantic -Werror -fsyntax-only)

# The library's own sources are built with these warnings too (capi/lib.sh). Some of tests/bench need hiredis.
c_programs() {
    find capi/examples tests -name '*.c' -not -path 'tests/bench/*' -print0 | xargs -0 -n 1 cc -std=gnu99 "${c_warnings[@]}" -Icapi
}

# run is .ci/run, which has no suffix.
shell_is_valid() { sources '*.sh' run | xargs -0 -n 1 bash -n; }

shellcheck_sources() { sources '*.sh' run | xargs -0 shellcheck -x; }
