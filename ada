#!/bin/sh
# Ada: makes its own Python environment beside itself when need be, then runs the verb.
# Works from any directory and through symbolic links; nothing is installed outside this folder.
set -eu

here=$0
while [ -L "$here" ]; do
    link=$(readlink "$here")
    case $link in /*) here=$link ;; *) here=$(dirname -- "$here")/$link ;; esac
done
root=$(CDPATH='' cd -- "$(dirname -- "$here")" && pwd -P)

# Only the verbs of development need the libraries of development.
lock=requirements.lock
for word in "$@"; do
    case $word in
        -*) ;;
        test | check | soak | lock) lock=requirements-dev.lock && break ;;
        *) break ;;
    esac
done

# The stamp holds the folder and the lock file it was made from: a moved clone and a changed lock are both made anew.
installed() {
    [ -x "$root/.venv/bin/python" ] &&
        { printf '%s\n' "$root" && cat "$root/$lock"; } | cmp -s - "$root/.venv/installed-$lock"
}

# A Python without ensurepip (Debian without python3-venv) is taken only when there is no better one.
python_able_to() {
    for name in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$name" -c "import sys$1; sys.exit(sys.version_info < (3, 11))" >/dev/null 2>&1; then
            printf '%s\n' "$name"
            return
        fi
    done
    return 1
}

if ! installed; then
    if ! python=$(python_able_to ', ensurepip, venv' || python_able_to ''); then
        {
            echo "ada: needs Python 3.11 or newer and found none (looked at \$PYTHON, python3, python3.11 to python3.14)."
            echo "     Debian, Ubuntu: sudo apt-get install python3 python3-venv; macOS: brew install python"
            echo "     If it is elsewhere: PYTHON=/path/to/python3.11 $0"
        } >&2
        exit 2
    fi
    "$python" -I "$root/cli/bootstrap.py" "$root" "$lock"
fi

# -P: a folder named like one of ours in the caller's directory must not be taken for it.
exec "$root/.venv/bin/python" -P -m cli "$@"
