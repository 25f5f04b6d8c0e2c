#!/bin/sh
# Sets everything up and runs lint, types, import rules and tests.
# Usage: sh test.sh                        what needs nothing but Python: a few minutes
#        sh test.sh --all [arguments]      everything; on Debian it installs the real components
#        sh test.sh --rest [arguments]     only the tests that the first one leaves out
#        sh test.sh arguments of pytest    these tests, whatever they need
set -eu
cd "$(dirname "$0")"
part="--part default"
case ${1:-} in
--all | --rest)
    part="--part ${1#--}"
    shift
    if command -v apt-get >/dev/null 2>&1; then
        sh .ci/install
    else
        echo "Without Debian's apt-get, tests whose component is missing are skipped." >&2
    fi
    ;;
?*) part= ;;
esac
sh setup.sh dev
PATH="$PWD/.venv/bin:$PATH"
export PATH

if [ "$part" != "--part rest" ]; then
    echo "== lint"
    ruff check --quiet .
    ruff format --check --quiet .
    echo "== types"
    mypy --no-error-summary
    echo "== imports"
    lint-imports --no-cache >.venv/imports.log || { cat .venv/imports.log && exit 1; }
fi
case $part in
*default) echo "== size" && python -m tools.check_size --quick ;;
*rest | *all) echo "== size" && python -m tools.check_size ;;
esac
echo "== tests"
in_parallel="-n ${BYTHEBOOK_TEST_PROCESSES:-2} --dist loadfile"
case $part in
*rest | *all)
    # Tests that measure how long readers wait run last, with nothing beside them.
    status=0
    # shellcheck disable=SC2086
    pytest $in_parallel $part -m "not alone" "$@" || status=$?
    # shellcheck disable=SC2086
    pytest $part -m alone "$@" || [ $? -eq 5 ] || status=1 # 5: the arguments select none of them
    exit $status
    ;;
esac
# shellcheck disable=SC2086
exec pytest $in_parallel $part "$@"
