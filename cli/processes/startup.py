"""The start of each process: logging, signal handlers, the address it listens on, its health.

A process touches a file while it works, and `--healthy` checks how old that file is. A health check of a container runs
beside the process, so it needs no port. The store: `cli.services.store`.
"""

import asyncio
import gc
import logging
import signal
import socket
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.command import SUCCESS, CommandFailed
from cli.settings.parsing import Address
from cli.settings.settings import Settings

log = logging.getLogger(__name__)

FULL = "%(asctime)s %(levelname)s %(name)s: %(message)s"
"""The format with ADA_LOG_LEVEL=debug."""


class ShortFormat(logging.Formatter):
    """Time and message, and the level of what is not ordinary: people read these lines."""

    def __init__(self) -> None:
        super().__init__(datefmt="%Y-%m-%d %H:%M:%S")

    def usesTime(self) -> bool:  # noqa: N802 - the name is logging's
        return True

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        return f"{record.asctime} {level}{record.message}"


def configure_logging(settings: Settings) -> None:
    """Log to stderr, one line per event. The supervisor adds the process name in front."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FULL) if settings.log_level == "debug" else ShortFormat())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])
    if settings.log_level != "debug":
        logging.getLogger("telethon").setLevel(logging.CRITICAL)  # it logs every connection; the courier reports faults


@dataclass
class Stop:
    """The event of `stop_requested` in a thread. `is_final`: the process or thread was asked to end, and not to begin
    anew.
    """

    loop: asyncio.AbstractEventLoop
    event: asyncio.Event
    is_final: bool = False

    def request(self) -> None:
        self.is_final = True
        self.event.set()


_STOPS: dict[threading.Thread, Stop] = {}


class StartAgain(Exception):
    """The process begins anew, as if it was started again. The message is the reason."""


def run_with_restarts(start: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run a process to its end, again for each StartAgain; return its exit code."""
    while True:
        try:
            return asyncio.run(start())
        except StartAgain as fault:
            stop = _STOPS.get(threading.current_thread())
            if stop and stop.is_final:
                return SUCCESS
            log.error("%s; this process has begun anew", fault)


def stop_requested() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set. A second signal ends the process at once."""
    thread, loop = threading.current_thread(), asyncio.get_running_loop()
    stop, before = Stop(loop, asyncio.Event()), _STOPS.get(thread)
    _STOPS[thread] = stop
    if thread is not threading.main_thread():  # the main thread receives the signals
        if before and before.is_final:
            stop.request()
        return stop.event

    def request(number: int) -> None:
        loop.remove_signal_handler(number)
        stop.request()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, request, number)
    return stop.event


def request_stop(thread: threading.Thread) -> bool:
    """Set the event of a thread; return whether it has one."""
    stop = _STOPS.get(thread)
    if stop is None:
        return False
    stop.is_final = True
    with suppress(RuntimeError):  # the loop is closed: the thread ends
        stop.loop.call_soon_threadsafe(stop.event.set)
    return True


def stop_to_start_again() -> bool:
    """Set the event of this thread, which begins anew; return whether it has one on this loop."""
    stop = _STOPS.get(threading.current_thread())
    if stop is None or stop.loop is not asyncio.get_running_loop():
        return False
    stop.event.set()
    return True


def collect_garbage_less_often() -> None:
    """Leave the modules out of every collection, and let more objects live between two.

    Requests and attempts leave hardly any cycles behind. With Python's defaults the collections took a third of a busy
    process's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


async def run_until(
    stop: asyncio.Event, work: Coroutine[Any, Any, int], on_stop: Callable[[], None] = lambda: None
) -> int:
    """Run the work; cancel it when a stop is requested, also during the start. `on_stop` is called before."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if working.done():
        stopping.cancel()
        return working.result()
    on_stop()
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working
    return SUCCESS


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


@contextmanager
def cannot_listen(address: Address, setting: str = "ADA_HTTP") -> Iterator[None]:
    """Explain why nothing can listen on an address. Raises CommandFailed for an OSError."""
    try:
        yield
    except OSError as error:
        raise CommandFailed(
            f"cannot listen on {address}: {error.strerror or error}; set {setting} to another"
        ) from error


def check_is_free(address: Address) -> None:
    """Check an address before a process is started for it. Raises CommandFailed if nothing can listen on this address
    now.
    """
    with cannot_listen(address), bind(address):
        pass


def bind(address: Address, *options: int) -> socket.socket:
    """Return a socket that is bound and does not listen."""
    family, kind, protocol, _, target = socket.getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    for option in (socket.SO_REUSEADDR, *options):
        bound.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        bound.bind(target)
    except OSError:
        bound.close()
        raise
    return bound
