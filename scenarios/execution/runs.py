"""The runs in Redis: begin, load, record how an action ended. Each is one script or one read.

Guarantees: an event has one run; an action ends once, also if two processes execute it at the same time; what was
recorded survives every crash.

A run is stored as its beginning, and one entry for each action that has ended, in order. The engine makes the run of
these again: the same beginning and the same endings give the same steps, results and moves. So a step costs one small
entry, whatever it releases.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

from core.model.history_key import HistoryKey, own_name
from core.model.json_form import JsonObject, compact_json
from core.redis.keys import KEYS
from core.redis.store import Store, shard_of_name
from scenarios import engine
from scenarios.bot import Bot, Scenario
from scenarios.bot.event_fields import Event, with_derived
from scenarios.context import Asking, Waiting
from scenarios.engine import Effects, Ending, Path, Run, Splice, State, Values, begin, end, handled
from scenarios.execution.versions import Version, Versions
from scenarios.words import Sentence, sentence

SLOW = "slow"

WaitsFor = Waiting | Asking | None
"""A `Waiting` is a delivery; an `Asking` an answer; None is a slow action, which has a task of its own."""
Waits = Mapping[Path, WaitsFor]

_ANSWER, _SEND = "answer", "send"
_ASK = "ask:"


def encode_wait(waiting: WaitsFor) -> str:
    """Return what a step waits for as it is stored in the run: `slow`, `answer <history key>` for a message to the
    event's person, `send,<others> <history key>` for any other,
    `ask:<until>:<remind>:<reminders>:<verdict>:<history key>` for an answer. Before the key of a delivery that is under
    way stands a space: its end wakes the run (`park_run`).
    """
    if waiting is None:
        return SLOW
    if isinstance(waiting, Asking):
        numbers = f"{waiting.until}:{waiting.remind}:{waiting.reminders}"
        return f"{_ASK}{numbers}:{waiting.verdict}:{' ' if waiting.under_way else ''}{waiting.delivery or ''}"
    others = "".join(f",{quote(str(one), safe='')}" for one in waiting.others)
    return f"{_ANSWER if waiting.one else _SEND}{others} {waiting.delivery}"


def decode_wait(text: str) -> WaitsFor:
    if text == SLOW:
        return None
    if text.startswith(_ASK):
        ends, again, reminders, verdict, delivery = text.removeprefix(_ASK).split(":", 4)
        key = HistoryKey.parse(delivery.removeprefix(" ")) if delivery else None
        return Asking(int(ends), int(again), int(reminders), key, verdict)
    words, _, delivery = text.partition(" ")
    kind, *others = words.split(",")
    keys = tuple(HistoryKey.parse(unquote(one)) for one in others)
    return Waiting(HistoryKey.parse(delivery), one=kind == _ANSWER, others=keys)


LARGEST_ENTRY = 256 * 1024
"""Bytes. An action that returns more has failed."""

log = logging.getLogger(__name__)
KEPT = 1000
"""Runs of one person that are listed."""
FAULTS = (State.FAILED, State.UNKNOWN)
_WAITS = "waits:"
_DROPPED = 100
"""Runs that one script call drops."""


class RunEntry(Struct, frozen=True, array_like=True):
    """One ending. `at`: ms. `scenarios`: the full names of those that it splices in; None without a splice."""

    path: Path
    state: State
    at: int
    results: JsonObject = {}
    variables: JsonObject = {}
    from_person: tuple[str, ...] = ()
    error: str = ""
    scenarios: tuple[str, ...] | None = None
    parallel: bool = False
    given: tuple[JsonObject, ...] = ()
    said: Sentence | None = None
    collect: tuple[str, ...] | None = None
    at_once: int = 0
    code: str = ""


def encode_entry(path: Path, ending: Ending, at: int) -> str:
    """Return the entry of an ending, in the form in which it is stored."""
    content = _encoded(path, ending, at)
    if len(content) > LARGEST_ENTRY:
        error = sentence("action_returned_bytes", size=len(content), most=LARGEST_ENTRY)
        content = _encoded(path, Ending(State.FAILED, error=error, code="RESULT_TOO_LARGE"), at)
    return content.decode()


def _encoded(path: Path, ending: Ending, at: int) -> bytes:
    returned, splice = ending.returned, ending.splice
    names = tuple(scenario.name for scenario in splice.scenarios) if splice else None
    from_person = tuple(sorted(returned.from_person))
    values = returned.results, returned.variables, from_person, str(ending.error)
    said = ending.error if isinstance(ending.error, Sentence) else None
    parallel, given = (splice.parallel, splice.given) if splice else (False, ())
    waits = (splice.collect, splice.at_once) if splice else (None, 0)
    entry = RunEntry(path, ending.state, at, *values, names, parallel, given, said, *waits, ending.code)
    return msgspec.json.encode(entry, enc_hook=str)


def decode_entry(stored: str) -> RunEntry:
    return msgspec.json.decode(stored, type=RunEntry)


def apply(run: Run, entry: RunEntry, bot: Bot) -> tuple[Run, Effects]:
    """Return the run after an ending."""
    ending = handled(_ending(entry, bot), run.steps[entry.path].action, bot.scenarios)
    return end(run, entry.path, ending, entry.at)


def replay(names: Iterable[str], began: int, entries: Iterable[RunEntry], bot: Bot, event: Event) -> Run:
    """Return the run that scenarios and endings have made."""
    run, _ = begin(found(names, bot), at=began, language=_language(event))
    for entry in entries:
        run, _ = apply(run, entry, bot)
    return run


def _language(event: Event) -> str:
    return str(event.get("language") or "")


def found(names: Iterable[str], bot: Bot) -> list[Scenario]:
    """Return the scenarios with these full names, as far as there are such."""
    return [bot.scenarios[name] for name in names if name in bot.scenarios]


def _ending(entry: RunEntry, bot: Bot) -> Ending:
    returned = Values(entry.results, entry.variables, frozenset(entry.from_person))
    named = None if entry.scenarios is None else tuple(found(entry.scenarios, bot))
    splice = None if named is None else Splice(named, entry.parallel, entry.given, entry.collect, entry.at_once)
    return Ending(entry.state, returned, entry.said or entry.error, splice, code=entry.code)


class RunGone(Exception):
    """The run, or the version of the bot that it began with, is not stored any more."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was last read or written. `task`: that of its event. `entries`: how many of its actions have ended.
    `waits`: what the steps of a parked run wait for. `is_dropped`: an operator has ended it.
    """

    id: str
    task: str
    tenant: str
    event: Event
    version: Version
    scenarios: Sequence[str]
    began: int
    run: Run
    entries: int
    waits: Waits = field(default_factory=dict)
    ended: int | None = None
    is_dropped: bool = False

    @property
    def is_over(self) -> bool:
        return self.is_dropped or self.run.is_over


def run_id(tenant: str, identity: str, person: str, shards: int) -> str:
    """Return the id of the run of an event: the same for each repeat. All runs of a person are in its shard."""
    digest = blake2b(identity.encode(), digest_size=10).hexdigest()
    return f"{shard_of_name(own_name(tenant, person), shards)}.{digest}"


def shard_of(run: str) -> int | None:
    """Return the shard of a run; None if this cannot be the id of one."""
    shard, _, name = run.partition(".")
    return int(shard) if shard.isascii() and shard.isdigit() and len(shard) < 6 and name.isalnum() else None


class Runs:
    """One per process and tenant. Without a `tenant` it begins none; the others are those of all tenants."""

    def __init__(self, store: Store, versions: Versions, tenant: str = "") -> None:
        self._store = store
        self._versions = versions
        self._tenant = tenant

    async def begin(
        self, run: str, task: str, person: str, event: Event, version: Version, scenarios: Sequence[str]
    ) -> StoredRun:
        """Return the new run of an event, or the one that it has already. `task`: that of the event. Raises RunGone."""
        stored = {"version": version.name, "event": compact_json(event), "task": task}
        arguments = run, self._tenant, person, KEPT, compact_json(list(scenarios))
        fields = chain.from_iterable(stored.items())
        reply = await self._store.run("begin_run", _shard(run), *arguments, *fields)
        if len(reply) > 1:
            return await self._read(run, dict(zip(reply[::2], reply[1::2], strict=True)))
        began = int(reply[0])
        derived = with_derived(event, version.bot.language)
        engine_run, effects = engine.begin(found(scenarios, version.bot), at=began, language=_language(derived))
        _report(run, effects)
        return StoredRun(run, task, self._tenant, derived, version, scenarios, began, engine_run, 0)

    async def load(self, run: str) -> StoredRun:
        """Return the run as it is now. Raises RunGone."""
        shard = shard_of(run)
        if shard is None or shard >= self._store.shards:
            raise RunGone(f"there is no run {run}")
        return await self._read(run, await self._store.command("HGETALL", KEYS["run"].at(shard, run)))

    async def _read(self, run: str, fields: Mapping[str, str]) -> StoredRun:
        version = await self._versions.get(fields["version"]) if fields else None
        if version is None:
            raise RunGone(f"the run {run} or its version of the bot is not stored any more")
        ended = [decode_entry(fields[str(number)]) for number in range(int(fields["entries"]))]
        scenarios = msgspec.json.decode(fields["scenarios"], type=tuple[str, ...])
        began, given = int(fields["began"]), msgspec.json.decode(fields["event"], type=JsonObject)
        event = with_derived(given, version.bot.language)
        return StoredRun(
            run,
            fields["task"],
            fields["tenant"],
            event,
            version,
            scenarios,
            began,
            replay(scenarios, began, ended, version.bot, event),
            len(ended),
            _waits(fields),
            int(fields["ended"]) if "ended" in fields else None,
            "dropped" in fields,
        )

    async def record(self, stored: StoredRun, path: Path, ending: Ending) -> StoredRun:
        """Record how an action ended; return the run after it. If it has ended already, that ending stays. A run that
        was dropped stays as it is.

        Raises RunGone.
        """
        while not (stored.is_dropped or stored.run.steps[path].is_over):
            text = encode_entry(path, ending, self.now())
            entry = decode_entry(text)
            run, effects = apply(stored.run, entry, stored.version.bot)
            arguments = stored.id, stored.entries, int(run.is_over), int(entry.state in FAULTS), text
            reply = await self._store.run("save_run", _shard(stored.id), *arguments)
            if reply == "saved":
                _report(stored.id, effects)
                return replace(stored, run=run, entries=stored.entries + 1)
            stored = await self.load(stored.id)
        return stored

    async def park(self, stored: StoredRun, found: Waits) -> None:
        """Note what steps wait for."""
        words = [word for path, one in found.items() for word in (path_text(path), encode_wait(one))]
        await self._store.run("park_run", _shard(stored.id), stored.id, stored.task, *words)

    async def take_over(self, stored: StoredRun, task: str) -> StoredRun:
        """Have another task drive the run from now on; the one before ends as soon as it reads the run."""
        await self._store.run("park_run", _shard(stored.id), stored.id, task)
        return replace(stored, task=task)

    async def drop(self, run: str) -> str:
        """End a run without its remaining actions. Returns "dropped"; "over" or "missing" if nothing was done."""
        return str(await self._store.run("drop_run", _shard(run), run))

    async def drop_ended(self) -> None:
        """Drop finished runs whose retention is over."""
        for shard in range(self._store.shards):
            while await self._store.run("drop_runs", shard, _DROPPED) == _DROPPED:
                pass

    def now(self) -> int:
        """Return the server's ms."""
        return time.time_ns() // 1_000_000 + self._store.clock_offset_ms


def path_text(path: Path) -> str:
    """Return a path as it is written in Redis: `0.2.1`."""
    return ".".join(map(str, path))


def _waits(fields: Mapping[str, str]) -> Waits:
    found = {name.removeprefix(_WAITS): text for name, text in fields.items() if name.startswith(_WAITS)}
    return {tuple(map(int, path.split("."))): decode_wait(text) for path, text in found.items()}


def _report(run: str, effects: Effects) -> None:
    for complaint in effects.complaints:
        log.warning("run %s: %s", run, complaint)


def _shard(run: str) -> int:
    return shard_of(run) or 0
