"""Health of a process: it touches a file while it works, and `--healthy` checks how old that file is.

A health check of a container runs beside the process, so it needs no port.
"""

import asyncio
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path

HEALTH_FILE = "pulse"
HEALTH_INTERVAL = 10.0
UNHEALTHY_AFTER = 60.0
"""Seconds without a sign of life after which a process is not healthy."""


def add_healthy_option(parser: ArgumentParser, process: str) -> None:
    """Add `--healthy`. `process` names the process in the help."""
    parser.add_argument(
        "--healthy", action="store_true", help=f"start nothing; exit 0 if the {process} is healthy, else 1"
    )


def is_healthy(health_file: Path) -> bool:
    return health_file.exists() and time.time() - health_file.stat().st_mtime < UNHEALTHY_AFTER


async def touch_while_working(done: Callable[[], int], health_file: Path) -> None:
    """Touch the file while the process does something, until cancelled. `done`: how much it has done so far."""
    last = -1
    while True:
        if done() > last:
            last = done()
            await asyncio.to_thread(health_file.touch)
        await asyncio.sleep(HEALTH_INTERVAL)
