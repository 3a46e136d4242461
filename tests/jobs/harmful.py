"""Jobs that the processes of the tests run: patient ones, and some that harm their process. HARM: a folder of notes."""

import asyncio
import hashlib
import os
import signal
import sys
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from jobs import Iteration, Job, Schedule

NOTES = Path(os.environ.get("HARM", "."))


class Patient(Job):
    """Each iteration waits, and stores nothing: it looks like a job that hangs."""

    name = "patient"
    schedule = Schedule(timedelta(seconds=1))

    async def run(self, iteration: Iteration) -> None:
        await asyncio.sleep(1)


class Harmful(Job):
    """The parameter `by` says how. Each begin is noted."""

    name = "harmful"
    schedule = Schedule(timedelta(seconds=1))

    async def run(self, iteration: Iteration) -> None:
        with (NOTES / "begun").open("a") as notes:
            notes.write(f"{os.getpid()}\n")
        match iteration.parameters["by"]:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit in a task":
                await asyncio.gather(_exit())
            case "sleep":
                time.sleep(60)  # noqa: ASYNC251 - that is the harm
            case "compute in a library, once" if iteration.number == 0 and _begun() == 1:
                hashlib.pbkdf2_hmac("sha256", b"", b"", 30_000_000)
                (NOTES / "free").touch()
            case "catch everything":
                while True:
                    with suppress(BaseException):
                        time.sleep(60)  # noqa: ASYNC251 - that is the harm


def _begun() -> int:
    return len((NOTES / "begun").read_text().splitlines())


async def _exit() -> None:
    sys.exit(0)
