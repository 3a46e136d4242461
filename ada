#!/bin/sh
# Creates Ada's Python environment `.venv` beside this file if necessary, then runs the given verb.
# Works from any directory and through symbolic links. Nothing is installed outside this folder.
set -eu
root=$(dirname -- "$(readlink -f -- "$0")")

verb= help= verbose=
for arg in "$@"; do
    case $arg in
        -h | --help) help=yes ;;
        --verbose) verbose=--verbose ;;
        -*) ;;
        *) verb=${verb:-$arg} ;;
    esac
done

# Only the verbs of development need the libraries of development, which include the others.
case $verb in
    test | check | prove | soak | lock) lock=requirements-dev.lock ;;
    *) lock=requirements.lock ;;
esac

# cli/bootstrap.py copies a lock file into .venv when all its libraries are installed.
installed() {
    cmp -s "$root/$lock" "$root/.venv/$lock" || cmp -s "$root/requirements-dev.lock" "$root/.venv/requirements-dev.lock"
}

find_python() {
    for python in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11; do
        "$python" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && return
    done
    echo "ada: needs Python 3.11 or newer with venv and ensurepip; looked at \$PYTHON, python3, python3.11 to python3.14." >&2
    echo "     Debian, Ubuntu: sudo apt-get install python3 python3-venv; macOS: brew install python" >&2
    echo "     A Python elsewhere: PYTHON=/path/to/python3.11 $0" >&2
    exit 2
}

# This help needs no libraries, so it installs none.
case $verb:$help in
    : | :yes | test:yes | check:yes | prove:yes | soak:yes | lock:yes)
        python=$root/.venv/bin/python
        [ -x "$python" ] || find_python
        PYTHONPATH=$root exec "$python" -P -m cli "$@"
        ;;
esac

if ! [ -x "$root/.venv/bin/python" ] || ! installed; then
    find_python
    "$python" -I "$root/cli/bootstrap.py" "$root" "$lock" $verbose
fi

# -P: a folder named `cli` in the caller's directory is not imported instead of ours.
exec "$root/.venv/bin/python" -P -m cli "$@"
