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
person() { "$GUIDE_PYTHON" -m tests.system.guides.person "$@"; }
