#!/bin/sh
# Runs the proving ground and writes its figures into docs/proof.md.
# Usage: sh prove.sh [--full] [--at-once N] [R1 S4 …]
set -eu
cd "$(dirname "$0")"
sh .ci/install
sh setup.sh dev
exec .venv/bin/python tools/prove.py "$@"
