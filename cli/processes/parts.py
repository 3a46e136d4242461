"""Notes of `./ada up` about its parts, in a file of the data directory: `up` itself has no connection to the store.

    supervisor ─▶ up.json, at each change and every ten seconds ─▶ doctor, and the entries of the processes

    the API, `./ada courier`, `./ada bot` ─▶ up.requests/, one file for each part to start again ─▶ supervisor

`up` removes the file before it stops its parts. Without a beat for a while `up` was killed, and nothing of it runs.

A verb beside a running `up` that has the account does not run itself: `up` starts its own process again.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cli.command import OPERATOR_NEEDED, SUCCESS, CommandFailed, closest
from cli.settings.settings import Configuration
from core.errors import Conflict, NotFound
from core.model.clock import in_ms
from core.model.parts import STABLE_AFTER, PartState, UpPart
from couriers.channel import channels

RESTART_DELAYS = (0.5, 1, 2, 5, 10, 30)
"""Seconds before the first, second, … restart. Later restarts use the last one."""

BEAT = 10.0
"""Seconds between two beats of the file."""
_LOOK = 0.5
"""Seconds between two looks at the parts."""
_SILENT_AFTER = timedelta(seconds=35)
_MOST_CHARACTERS = 500
_FILE = "up.json"
_REQUESTS = "up.requests"
_MOST_REQUEST = 200

UP_PART = "UP_PART"
"""The variable by which a process knows that it is a part of `./ada up`: the name of the part."""


class PartTracker:
    """Follows one part from its first start, and returns how long it pauses before the next."""

    def __init__(self, name: str) -> None:
        now = now_ms()
        self.part = UpPart(name=name, at=now, since=now)

    def starts(self) -> None:
        self._enters(PartState.STARTING)

    def is_ready(self) -> None:
        """Note that it works."""
        self._enters(PartState.RUNNING)

    def ends(self, reason: str) -> float:
        """Note that it has ended and is started again; return the pause before, in seconds."""
        self._counts(reason)
        self._enters(PartState.RESTARTING)
        return RESTART_DELAYS[min(self.part.ends, len(RESTART_DELAYS)) - 1]

    def stops(self, reason: str) -> None:
        self._counts(reason)
        self._enters(PartState.STOPPED)
        self.part = replace(self.part, since=self.part.at)

    def _counts(self, reason: str) -> None:
        now, part = now_ms(), self.part
        has_recovered = part.state is PartState.RUNNING and now - part.at > in_ms(STABLE_AFTER)
        is_first = not part.ends or has_recovered
        ends, since = (1, now) if is_first else (part.ends + 1, part.since)
        self.part = replace(part, ends=ends, since=since, reason=reason[:_MOST_CHARACTERS])

    def _enters(self, state: PartState) -> None:
        self.part = replace(self.part, state=state, at=now_ms())


OWN_THREAD: ContextVar[PartTracker | None] = ContextVar("part", default=None)
"""The part that this thread is; None in a process that is one part."""


class UpNote(Struct, frozen=True):
    """`beat`: the last sign of life of `up`, Unix ms."""

    beat: int
    parts: Sequence[UpPart]

    @property
    def is_up(self) -> bool:
        """Return whether `up` runs."""
        return now_ms() - self.beat < in_ms(_SILENT_AFTER)


_decode = msgspec.json.Decoder(UpNote).decode


def write_note(data: Path, parts: Sequence[UpPart]) -> None:
    """Write the file. A disk that is full leaves the old one: nothing depends on it."""
    new = data / f"{_FILE}.new"
    with suppress(OSError):
        new.touch(mode=0o600)
        new.write_bytes(msgspec.json.encode(UpNote(now_ms(), parts)))
        new.replace(data / _FILE)


class UpNoteWriter:
    """Keeps the file of one `up` as its parts are."""

    def __init__(self, data: Path, parts: Callable[[], Sequence[UpPart]]) -> None:
        self._data = data
        self._parts = parts
        self._noted: Sequence[UpPart] | None = None
        self._beat = 0.0
        self._lock = asyncio.Lock()

    async def write(self) -> None:
        """Write the current parts. Afterwards readers of the file find each of them."""
        async with self._lock:
            self._noted, self._beat = self._parts(), time.monotonic()
            await asyncio.to_thread(write_note, self._data, self._noted)

    async def keep(self) -> None:
        """Write the file again and again, until cancelled; then remove it."""
        try:
            while True:
                if self._parts() != self._noted or time.monotonic() - self._beat > BEAT:
                    await self.write()
                await asyncio.sleep(_LOOK)
        finally:
            with suppress(OSError):
                (self._data / _FILE).unlink()


def read_note(data: Path) -> UpNote | None:
    """Return what `up` has noted in this directory; None if it does not run there, or was stopped."""
    try:
        return _decode((data / _FILE).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None


def ask_to_start(data: Path, verb: str) -> None:
    """Ask `./ada up` to start one of its processes again, such as `courier vk`; it does so within a second."""
    folder = data / _REQUESTS
    folder.mkdir(mode=0o700, exist_ok=True)
    new = folder / f".{secrets.token_hex(8)}"
    new.touch(mode=0o600)
    new.write_text(verb)
    new.rename(folder / new.name.removeprefix("."))


async def follow_requests(data: Path, start: Callable[[str], None]) -> None:
    """Call `start` for each request, until cancelled."""
    while True:
        for verb in await asyncio.to_thread(take_requests, data):
            start(verb)
        await asyncio.sleep(_LOOK)


def take_requests(data: Path) -> Sequence[str]:
    """Return the verbs of the requests, each once: two people who ask for one process start it once."""
    found = [file for file in (data / _REQUESTS).glob("[!.]*") if file.is_file()]
    verbs = []
    for file in found:
        with suppress(OSError, UnicodeDecodeError):
            verbs.append(file.read_text()[:_MOST_REQUEST])
            file.unlink()
    return sorted(set(verbs))


def now_ms() -> int:
    return int(time.time() * 1000)


_START_LOOK = 0.2
_PATIENCE = 60.0
"""Seconds in which a part starts or ends."""


def runs_under_up(configuration: Configuration, channel: str, verb: str) -> bool:
    """Return whether these settings have no account for the channel, and the `./ada up` on this data directory, which
    is another process, runs the verb with its own.
    """
    if UP_PART in os.environ or any(name in configuration.raw for name in channels()[channel].settings_of_account):
        return False
    return part_that_runs(configuration.settings.data, verb) is not None


def start_by_up(data: Path, verb: str) -> int:
    """Have `up` start its process again and wait for it. Raises CommandFailed with the reason if it ends again."""
    return asyncio.run(_start_by_up(data, verb))


async def _start_by_up(data: Path, verb: str) -> int:
    before = part_that_runs(data, verb)
    ask_to_start(data, verb)  # also one that runs: it may be about to end
    if before and before.state in (PartState.RUNNING, PartState.STARTING):
        print(f"`./ada up` runs {verb} with its own account")
        return SUCCESS
    async with asyncio.timeout(_PATIENCE):
        while True:
            await asyncio.sleep(_START_LOOK)
            part = part_that_runs(data, verb)
            if part and part.state is PartState.RUNNING:
                print(f"`./ada up` has started {verb} again, with its own account")
                return SUCCESS
            if part and before and part.at > before.at and part.state is PartState.STOPPED:
                raise CommandFailed(
                    f"`./ada up` has started {verb} again, and it ended: {part.reason}", OPERATOR_NEEDED
                )


async def start_verb(data: Path, verb: str, new: Collection[str]) -> None:
    """Ask `up` to start its process again. `new`: verbs of processes that it may not have yet. Raises Conflict
    PROCESS_NOT_UNDER_UP if no `up` runs on this data directory, NotFound PROCESS_NOT_FOUND if it has no such process.
    """
    note = await asyncio.to_thread(read_note, data)
    if not (note and note.is_up):
        detail = f"No `./ada up` runs beside this API. Start the process where it belongs: ./ada {verb}"
        raise Conflict("PROCESS_NOT_UNDER_UP", detail)
    if verb not in new:
        _check_part(note, verb)
    await asyncio.to_thread(ask_to_start, data, verb)


_SHARED = {"courier": "couriers", "bot": "bots"}


def _check_part(note: UpNote, verb: str) -> None:
    """Check that `up` has a part for this verb. The threads of a shared process are not known while it does not run."""
    kind, _, name = verb.partition(" ")
    verbs = [f"courier {part.name}" if part.name in channels() else part.name for part in note.parts]
    is_unknown = any(part.name == _SHARED.get(kind) and part.state is not PartState.RUNNING for part in note.parts)
    if verb in verbs or (is_unknown and name in channels()):
        return
    if kind == "courier" and name in channels():
        detail = f"The channel {name} has no account: set {channels()[name].account} and start `./ada up` again."
    else:
        detail = f"`./ada up` has no process {verb}{closest(verb, verbs)}"
    raise NotFound("PROCESS_NOT_FOUND", detail)


def part_that_runs(data: Path, verb: str) -> UpPart | None:
    """Return the part of `up` that runs a verb: a process, or a thread of one."""
    note = read_note(data)
    names = (verb, verb.removeprefix("courier "))
    return next((one for one in note.parts if one.name in names), None) if note and note.is_up else None
