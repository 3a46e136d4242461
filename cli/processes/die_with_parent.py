"""A child process that ends with us, even when we are killed with SIGKILL.

The child is started with a pipe as its standard input, of which it has nothing but the reading end. When we die, in
whatever way, the kernel closes the writing end; a sleeping shell beside the child notices and ends the child. The shell
costs about one megabyte and no processor time; it works on Linux and macOS alike (prctl would only on Linux).

The child must be started in a session of its own: the shell is a member of its process group, so the number `$$` cannot
be given to a stranger while the shell still means to signal it.
"""

from collections.abc import Sequence

# `exec` keeps the number of the process: who started the shell is the parent of the child itself and can wait for it.
# A child that has ended by itself cannot be signalled; then nothing is left to do.
_SHELL = """
exec 3<&0
{
    read -r word <&3
    kill -TERM $$ || exit
    for second in 1 2 3 4 5 6 7 8 9 10; do sleep 1; kill -0 $$ || exit; done
    kill -KILL 0
} >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null
"""


def tethered(command: Sequence[str]) -> list[str]:
    """The command to start instead, with `stdin=PIPE` and `start_new_session=True`; its process is the child itself.

    Close that pipe when the child has ended.
    """
    return ["/bin/sh", "-c", _SHELL, "tether", *command]
