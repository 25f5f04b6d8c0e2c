#!/bin/sh
# Sets everything up and runs lint, types, import rules and tests.
# Usage: sh test.sh [arguments of pytest]
set -eu
cd "$(dirname "$0")"
sh setup.sh dev
PATH="$PWD/.venv/bin:$PATH"
export PATH

echo "== lint"
ruff check --quiet .
ruff format --check --quiet .
echo "== types"
mypy --no-error-summary
echo "== imports"
lint-imports --no-cache >.venv/imports.log || { cat .venv/imports.log && exit 1; }
echo "== tests"
exec pytest -n "${BYTHEBOOK_TEST_PROCESSES:-2}" --dist loadfile "$@"
