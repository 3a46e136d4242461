# The terminal of a guide's reader: what earlier blocks have set is here, and every command that fails is named.
if [ -e .terminal ]; then source ./.terminal; fi
set -aE -o pipefail
GUIDE_FAILED=0
trap 'echo "failed with $?: $BASH_COMMAND"; GUIDE_FAILED=1' ERR
trap '{ export -p; declare -f; } >.terminal; exit $GUIDE_FAILED' EXIT

# An answer that is an error fails. A stream that does not end is read for two seconds.
curl() {
    case " $* " in
        *" -N "*) command curl -sS --max-time 2 "$@" || [ $? = 28 ] ;;
        *) command curl -sS --fail-with-body --max-time 30 "$@" ;;
    esac
}

# A person at the inbox page: person write CHANNEL ADDRESS TEXT, person press ADDRESS BUTTON, person sees CHANNEL ADDRESS TEXT
person() { "$GUIDE_ROOT/tests/system/guides/forks.sh" tests.system.guides.person "$@"; }

# A program that is none of Ada's, in a terminal of its own. Its output is in a file of its name.
background() {
    "$@" >"$(basename "$1").log" 2>&1 </dev/null &
    local started=$!
    { read -r _ <&"$GUIDE_PIPE" || kill -KILL $started; } >/dev/null 2>&1 &
}

until_open() { repeat ": </dev/tcp/127.0.0.1/$1"; }

# Repeats a command until it succeeds, for half a minute.
repeat() {
    for _ in $(seq 300); do
        if (eval "$1") 2>/dev/null; then return; fi
        sleep 0.1
    done
    echo "did not succeed: $1"
    return 1
}
