#!/bin/sh
# Sets everything up and runs lint, types, imports and tests.
set -eu
cd "$(dirname "$0")"
sh setup.sh dev
PATH="$PWD/.venv/bin:$PATH"
export PATH
step() { printf '== %s\n' "$*"; }

step lint && ruff check --quiet . && ruff format --check --quiet .
step types && mypy --no-error-summary
step imports && lint-imports --no-cache >/dev/null || { lint-imports --no-cache; exit 1; }
step tests && exec pytest "$@"
