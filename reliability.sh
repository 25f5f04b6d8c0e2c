#!/bin/sh
# Runs the fault, load and attack suite and writes its figures into docs/operators/reliability.md.
# Usage: sh reliability.sh [--full] [--processes N] [R1 S4 …]
set -eu
cd "$(dirname "$0")"
sh .ci/install
sh setup.sh dev
exec .venv/bin/python reliability/report.py "$@"
