# ruff: noqa: T201 - it is a program
"""A supervisor with one forked child, for test_forked_process: prints each line of the child. Also the child."""

import asyncio
import multiprocessing
import os
import signal
import sys
from pathlib import Path

from cli.processes.forked_process import start_fork_server
from cli.processes.supervisor import ChildSpec, Supervisor, announce

CHILD = "child"


async def supervise() -> None:
    start_fork_server(["json"])
    supervisor = Supervisor(lambda name, line: print(name, line, flush=True))
    spec = ChildSpec(
        CHILD,
        ("tests.cli.forked_children", CHILD),
        1,
        {"ADA_OWN": "1"},
        forked=True,
        may_receive=lambda name: name != "ADA_SECRET_KEY",
    )
    await supervisor.start(spec)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await supervisor.stop()
    print("stopped", flush=True)


def child() -> None:
    print("pids", os.getpid(), os.getppid(), flush=True)
    print("settings", *sorted(name for name in os.environ if name.startswith("ADA_")), flush=True)
    print("known", "ADA_SECRET_KEY" in Path("/proc/self/environ").read_text(), flush=True)
    own = multiprocessing.get_context("fork").Process(target=print, args=("a child of its own",))
    own.start()
    own.join()
    announce()
    print("x" * 2_000_000)
    print("to stderr", file=sys.stderr)
    signal.pause()


if __name__ == "__main__":
    child() if sys.argv[1:] == [CHILD] else asyncio.run(supervise())
