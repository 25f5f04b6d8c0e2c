#!/bin/sh
# Locks what pyproject.toml asks for, with hashes, for every platform. Needs `uv` (pip install uv).
set -eu
cd "$(dirname "$0")/.."
lock() {
    uv pip compile pyproject.toml packages/bythebook-formats/pyproject.toml --universal --python-version 3.11 --generate-hashes \
        --no-emit-package bythebook --no-emit-index-url --no-annotate --quiet --custom-compile-command "sh requirements/lock.sh" "$@"
}
lock --output-file requirements/run.txt
lock --group dev --output-file requirements/dev.txt
lock --extra qdrant --extra postgres --extra redis --extra multilingual --extra mcp \
    --constraint requirements/dev.txt --output-file requirements/deploy.txt
