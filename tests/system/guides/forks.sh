#!/bin/bash
# `forks.sh MODULE ARGS` is `python -P -m MODULE ARGS`, forked by the test (forks.py), which reads everything else from /proc.
exec 3<>"/dev/tcp/127.0.0.1/$GUIDE_FORKS"
echo $$ >&3
read -r -u 3 code
exit "$code"
