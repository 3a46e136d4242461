"""Health of a process: it touches a file while it works, and `--healthy` looks how old that file is.

A health check of a container runs beside the process, so it needs no port.
"""

import asyncio
import time
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path

from core.errors import StoreError
from core.redis.keys import KEYS
from core.redis.store import Store

HEALTH_FILE = "pulse"
HEALTH_INTERVAL = 10.0
UNHEALTHY_AFTER = 60.0
"""Seconds without a sign of life after which a process is not healthy."""


def add_healthy_option(parser: ArgumentParser, process: str) -> None:
    """Adds `--healthy`. `process` names the process in the help."""
    parser.add_argument(
        "--healthy", action="store_true", help=f"start nothing; exit 0 if the {process} is healthy, else 1"
    )


def is_healthy(health_file: Path) -> bool:
    return health_file.exists() and time.time() - health_file.stat().st_mtime < UNHEALTHY_AFTER


async def report_health(store: Store, health_file: Path) -> None:
    """Touches the health file while the process works and reaches the store."""
    while True:
        with suppress(StoreError):
            await store.command("GET", KEYS["layout"].at(0))
            await asyncio.to_thread(health_file.touch)
        await asyncio.sleep(HEALTH_INTERVAL)
