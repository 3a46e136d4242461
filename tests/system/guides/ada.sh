#!/bin/bash
# Stands for ./ada in the folder of a guide's reader. What runs until Ctrl-C runs in the background here, as in a terminal
# of its own; a second `up` ends the first. Everything ends when the test closes the pipe GUIDE_PIPE.
set -eu
ada=("$GUIDE_PYTHON" -P -m cli)

case "$*" in
    up) ready='Ada is up' ;;
    sandbox) ready='inbox page' ;;
    "courier "* | "bot "* | jobs | scenarios) ready='ready {' ;;
    *" --follow") timeout 2 "${ada[@]}" "$@" || [ $? = 124 ]; exit ;;
    *) exec "${ada[@]}" "$@" ;;
esac

log="$PWD/$(echo "$*" | tr ' ' -).log" pid="$PWD/.$1.pid"
if [ "$*" = up ] && [ -n "${GUIDE_UP:-}" ] && ! [ -e .env ] && [ "$(env | grep -c ^ADA_)" = 1 ]; then
    exec cat "$GUIDE_UP"  # it runs already, for all guides that need no other settings
fi
if [ -e "$pid" ] && [ "$1" = up ]; then
    kill -INT "$(cat "$pid")" 2>/dev/null || true
    while kill -0 "$(cat "$pid")" 2>/dev/null; do sleep 0.05; done
fi
"${ada[@]}" "$@" >"$log" 2>&1 </dev/null &
echo $! >"$pid"
{ read -r _ <&"$GUIDE_PIPE"; kill -KILL $!; } >/dev/null 2>&1 &
until grep -q "$ready" "$log"; do
    if ! kill -0 "$(cat "$pid")" 2>/dev/null; then
        cat "$log"
        exit 1
    fi
    sleep 0.05
done
cat "$log"
