"""Keeps one job that blocks the event loop from stopping all others of its process.

After `FAILS` the blocking code of a job gets an exception, wherever it stands: a sleep, a loop, a request. Code that no
exception reaches, in a library or in a handler that catches everything, ends the process after `ENDS`; its supervisor
starts another one. The stacks of all threads then go to stderr and show the line.
"""

import asyncio
import faulthandler
import signal
from datetime import timedelta
from pathlib import Path
from types import FrameType

import core
from jobs.attempts import JOB
from jobs.signals import Blocked

FAILS = timedelta(seconds=5)
"""Half of the lease of jobs: the other jobs of the process keep theirs."""

ENDS = timedelta(seconds=20)

_ALIVE_EVERY = 1.0
_AGAIN = 0.1
_CORE = str(Path(core.__file__).parent)


async def watch_loop() -> None:
    """Run until cancelled, in the main thread."""
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        while True:
            signal.setitimer(signal.ITIMER_REAL, FAILS.total_seconds(), FAILS.total_seconds())
            faulthandler.dump_traceback_later(ENDS.total_seconds(), exit=True)
            await asyncio.sleep(_ALIVE_EVERY)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise Blocked in the code of the job that runs at this moment: the event loop has not answered for `FAILS`.

    A call of a job into `core`, which other jobs use too, is not interrupted: it does not block, and ends at once.
    """
    if not JOB.get():
        return
    if _is_in_core(frame):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN, FAILS.total_seconds())
        return
    raise Blocked(f"blocked all jobs of its process for {FAILS.total_seconds():g} s")


def _is_in_core(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_CORE):
            return True
        frame = frame.f_back
    return False
