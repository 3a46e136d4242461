"""Makes a child process end when its parent ends, also when the parent is killed with SIGKILL.

The child is started with a pipe as its standard input. Only the parent holds the writing end. When the parent dies, the
kernel closes that end; a shell beside the child, which waits on the reading end, then ends the child. The shell uses
about one megabyte and no processor time. This works on Linux and macOS; prctl works only on Linux.

The child must start in a session of its own. The shell is a member of the child's process group, so the process id `$$`
cannot be reused by another process while the shell may still signal it.
"""

from collections.abc import Sequence

# `exec` keeps the process id: the parent of the shell is the parent of the child and can wait for it.
# A child that has ended cannot be signalled; then the shell just exits.
_SHELL = """
exec 3<&0
{
    read -r line <&3
    kill -TERM $$ || exit
    for second in 1 2 3 4 5 6 7 8 9 10; do sleep 1; kill -0 $$ || exit; done
    kill -KILL 0
} >/dev/null 2>&1 &
exec "$@" 3<&- </dev/null
"""


def die_with_parent(command: Sequence[str]) -> list[str]:
    """Return the command line to start instead. Start it with `stdin=PIPE` and `start_new_session=True`.

    The started process is the child itself. Close the pipe when the child has ended.
    """
    return ["/bin/sh", "-c", _SHELL, "die-with-parent", *command]
