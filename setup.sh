#!/bin/sh
# Makes .venv with exactly the locked packages; does nothing when they are there already.
# Usage: sh setup.sh [run|dev]
set -eu
cd "$(dirname "$0")"
set_of_packages=${1:-run}
lock=requirements/$set_of_packages.txt
stamp=.venv/installed-$set_of_packages
projects="pyproject.toml packages/bythebook-formats/pyproject.toml"

find_python() {
    for name in "${PYTHON:-}" python3.13 python3.12 python3.11 python3 python; do
        if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 &&
            "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    echo "By the Book needs Python 3.11 or newer: install it, or set PYTHON to one." >&2
    exit 2
}

if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$(find_python)
    rm -rf .venv
    "$python" -m venv .venv
fi
if ! cmp -s "$lock" "$stamp" || ! cat $projects | cmp -s - .venv/installed-pyproject; then
    echo "Installing the packages of $lock into .venv (about a minute, once) …" >&2
    .venv/bin/python -m pip install -qq --disable-pip-version-check --require-hashes -r "$lock"
    .venv/bin/python -m pip install -qq --disable-pip-version-check --no-deps --editable . --editable ./packages/bythebook-formats
    cat $projects >.venv/installed-pyproject
    cp "$lock" "$stamp"
fi
