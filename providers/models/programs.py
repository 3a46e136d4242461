"""Runs a program within a time limit: no shell, the text on its standard input, killed when the caller is cancelled."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from datetime import timedelta
from subprocess import PIPE

from providers.models.errors import AiNotSetUp, AiRefused, AiUnavailable

PACKAGES = {"espeak-ng": "espeak-ng", "ffmpeg": "ffmpeg", "ffprobe": "ffmpeg"}
"""Program → the Debian package that has it."""

NICENESS = 10
_LONGEST_COMPLAINT = 200


async def run_program(program: str, arguments: Sequence[str], time_limit: timedelta, text: str = "") -> bytes:
    """Return what the program prints. Raises AiNotSetUp if it is not installed, AiRefused if it fails, AiUnavailable
    if it does not end in time.
    """
    process = await asyncio.create_subprocess_exec(
        installed(program), *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment()
    )
    _lower_priority(process.pid)
    try:
        async with asyncio.timeout(time_limit.total_seconds()):
            output, complaints = await process.communicate(text.encode())
    except TimeoutError:
        seconds = time_limit.total_seconds()
        raise AiUnavailable("PROGRAM_TIMEOUT", f"{program} did not end within {seconds:g} s") from None
    finally:
        await _kill(process)
    if process.returncode != 0:
        raise AiRefused("PROGRAM_FAILED", f"{program}: {_last_line(complaints)}")
    return output


def installed(program: str) -> str:
    """Return the path of a program. Raises AiNotSetUp."""
    path = shutil.which(program)
    if path is None:
        raise AiNotSetUp("PROGRAM_MISSING", f"{program} is not installed; install the package {PACKAGES[program]}")
    return path


def environment() -> dict[str, str]:
    """Return the environment of this process without Ada's settings, because they contain secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}


def _lower_priority(pid: int) -> None:
    """Lower the priority of a process: messages and answers come first on a busy machine."""
    try:
        os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
    except OSError:  # it has ended, or has a lower priority already
        pass


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        try:
            process.kill()
        except ProcessLookupError:
            pass
        await process.wait()


def _last_line(complaints: bytes) -> str:
    lines = complaints.decode(errors="replace").strip().splitlines()
    return lines[-1][:_LONGEST_COMPLAINT] if lines else "it failed without a message"
