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
    *) [ "$PYTHONPATH" = "$GUIDE_ROOT" ] || exec "${ada[@]}" "$@"
       exec "$GUIDE_ROOT/tests/system/guides/forks.sh" cli "$@" ;;
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
started=$!
echo $started >"$pid"
# `read` fails at the end of the pipe: without `||` this shell would end there and kill nothing.
{ read -r _ <&"$GUIDE_PIPE" || kill -KILL $started; } >/dev/null 2>&1 &
for _ in $(seq 1800); do
    if grep -q "$ready" "$log"; then exec cat "$log"; fi
    if ! kill -0 $started 2>/dev/null; then break; fi
    sleep 0.05
done
kill -KILL $started 2>/dev/null || true
cat "$log"
exit 1
