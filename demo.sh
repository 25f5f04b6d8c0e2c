#!/bin/sh
# Sets everything up, ingests the sample book, asks it three questions and serves the page.
# Usage: sh demo.sh [--no-serve] [--port N]
set -eu
cd "$(dirname "$0")"
port=8000
serve=yes
while [ $# -gt 0 ]; do
    case $1 in
    --no-serve) serve=no ;;
    --port) port=${2:?--port needs a number} && shift ;;
    *) echo "demo.sh: unknown option $1 (there are --no-serve and --port N)" >&2 && exit 2 ;;
    esac
    shift
done

sh setup.sh run
home=${BYTHEBOOK_HOME:-.bythebook}
bythebook=.venv/bin/bythebook

$bythebook ingest examples/physical-ai-book/docs --home "$home"
for question in \
    "What is the difference between a topic and a service?" \
    "How can I make my object detector faster?" \
    "Who invented the Kalman filter?"; do
    printf '\n%s bythebook ask "%s"\n' '$' "$question"
    # Exit code 1 says that the book does not answer; that is one of the three on purpose.
    $bythebook ask "$question" --home "$home" || [ $? -eq 1 ]
done
[ $serve = no ] || exec $bythebook serve --home "$home" --port "$port"
