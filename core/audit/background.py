"""An audit that is started over HTTP: one at a time on a server, in a thread of its own, with its progress in Redis.

    start ─▶ a thread with its own connection ─▶ progress, findings ─▶ any process of the API reads them

The thread leaves the event loop of its process free. If the process ends, the run stays as it is, and counts as broken
off when it has written nothing for `_SILENCE_MS`. The audit only reads; a repair is one step of the server, so no end
of a process leaves half of one. `./ada audit` does the same at the terminal.
"""

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.audit.audit import Audit
from core.audit.invariants.invariant import Repair, Violation
from core.errors import AdaError, Conflict, NotFound
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store

log = logging.getLogger(__name__)

MOST_FINDINGS = 1000
REPORT_KEPT = timedelta(days=1)
_KEPT_MS = REPORT_KEPT // timedelta(milliseconds=1)
_SILENCE_MS = 30_000
_BEAT = 2.0
_RUN, _FINDINGS, _LOCK = (KEYS[name].at(0) for name in ("audit", "audit_findings", "audit_lock"))


class RunState(StrEnum):
    """`broken_off`: its process has ended."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    BROKEN_OFF = "broken_off"


class AuditRun(Struct, frozen=True, kw_only=True):
    """One pass over the server. Times are Unix ms. `keys`, `tasks`, `deliveries`: what was read so far, of `all_keys`.
    `violations`: how many were found; the first 1,000 are kept.
    """

    id: str
    by: str
    started: int
    beat: int
    state: RunState = RunState.RUNNING
    reason: str = ""
    keys: int = 0
    all_keys: int = 0
    tasks: int = 0
    deliveries: int = 0
    violations: int = 0


class AuditFinding(Struct, frozen=True, kw_only=True):
    """A violation. `repair`: the function of the server that repairs it, None if none does so safely; `why` says why
    then. `changes`: what a repair has changed, None before it.
    """

    number: int
    rule: str
    key: str
    found: str
    wanted: str
    repair: str | None = None
    arguments: Sequence[str | int] = ()
    why: str = ""
    changes: Sequence[str] | None = None

    @classmethod
    def of(cls, number: int, violation: Violation) -> "AuditFinding":
        repair = violation.repair
        return cls(
            number=number,
            rule=violation.rule,
            key=violation.key,
            found=violation.found,
            wanted=violation.wanted,
            repair=repair.script if repair else None,
            arguments=repair.arguments if repair else (),
            why=violation.why,
        )

    def violation(self) -> Violation:
        """Return the violation, as the audit repairs it."""
        repair = Repair(self.repair, tuple(self.arguments)) if self.repair else None
        return Violation(self.rule, self.key, self.found, self.wanted, repair, self.why)


_decode_run = msgspec.json.Decoder(AuditRun).decode
_decode_finding = msgspec.json.Decoder(AuditFinding).decode


class BackgroundAudits:
    """Starts audits and repairs, and returns what they have found."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def start(self, by: str) -> AuditRun:
        """Start an audit. Raises Conflict AUDIT_RUNNING."""
        now = self._store.now_ms()
        run = AuditRun(id=secrets.token_hex(8), by=by, started=now, beat=now)
        taken = await self._store.command("SET", _LOCK, run.id, "NX", "PX", _SILENCE_MS)
        if not taken and await self._store.command("GET", _LOCK) != run.id:
            raise Conflict("AUDIT_RUNNING", "An audit is running already.")
        await self._store.command("DEL", _FINDINGS)
        await _write(self._store, run)
        url, shards = self._store.configured_url, self._store.shards
        threading.Thread(target=_run_in_thread, args=(url, shards, run), name="audit", daemon=True).start()
        return run

    async def last(self) -> AuditRun | None:
        """Return the last run as it is now; None if there was none within a day."""
        text = await self._store.command("GET", _RUN)
        run = _decode_run(text) if text else None
        if run and run.state is RunState.RUNNING and self._store.now_ms() - run.beat > _SILENCE_MS:
            return replace(run, state=RunState.BROKEN_OFF)
        return run

    async def findings(self) -> Sequence[AuditFinding]:
        """Return the violations of the last run, the first 1,000."""
        return [_decode_finding(text) for text in await self._store.command("LRANGE", _FINDINGS, 0, -1)]

    async def find(self, run: str, number: int) -> AuditFinding:
        """Return one violation of a run. Raises NotFound FINDING_NOT_FOUND, also if there is a later run."""
        last = await self.last()
        text = await self._store.command("LINDEX", _FINDINGS, number) if last and last.id == run else None
        if text is None:
            raise NotFound("FINDING_NOT_FOUND", "The last audit has no such finding.")
        return _decode_finding(text)

    async def repair(self, run: str, number: int) -> AuditFinding:
        """Repair one violation: the function checks again and changes only what is still wrong. Raises NotFound
        FINDING_NOT_FOUND, Conflict NO_SAFE_REPAIR.
        """
        finding = await self.find(run, number)
        if finding.repair is None:
            raise Conflict("NO_SAFE_REPAIR", f"There is no safe repair: {finding.why}.")
        changes = await Audit(self._store).repair(finding.violation())
        repaired = replace(finding, changes=changes)
        await self._store.command("LSET", _FINDINGS, number, _encoded(repaired))
        return repaired


def _run_in_thread(url: str, shards: int, run: AuditRun) -> None:
    asyncio.run(_run(url, shards, run))


async def _run(url: str, shards: int, run: AuditRun) -> None:
    """Run the audit with a connection of its own, and note how it ends."""
    try:
        store = await Store.open(url, shards)
    except AdaError as fault:
        log.warning("the audit could not begin: %s", fault)
        return
    running = _RunningAudit(store, run)
    beating = asyncio.create_task(running.keep())
    try:
        await running.find()
        state, reason = RunState.DONE, ""
    except AdaError as fault:
        state, reason = RunState.FAILED, str(fault)
    finally:
        await cancel_and_wait(beating)
    try:
        await running.note(state=state, reason=reason)
        await store.command("DEL", _LOCK)
    except AdaError as fault:
        log.warning("the end of the audit is not noted: %s", fault)
    finally:
        await store.close()


class _RunningAudit:
    """The audit of the thread."""

    def __init__(self, store: Store, run: AuditRun) -> None:
        self._store = store
        self._run = run
        self._audit = Audit(store)

    async def find(self) -> None:
        async for violation in self._audit.find():
            number = self._run.violations
            self._run = replace(self._run, violations=number + 1)
            if number < MOST_FINDINGS:
                await self._store.command("RPUSH", _FINDINGS, _encoded(AuditFinding.of(number, violation)))
                await self._store.command("PEXPIRE", _FINDINGS, _KEPT_MS)

    async def keep(self) -> None:
        """Note the progress again and again, until cancelled."""
        while True:
            try:
                await self._store.command("SET", _LOCK, self._run.id, "PX", _SILENCE_MS)
                await self.note()
            except AdaError as fault:
                log.debug("progress of the audit not noted: %s", fault)
            await asyncio.sleep(_BEAT)

    async def note(self, **changes: Any) -> None:
        progress = await self._audit.progress()
        self._run = replace(
            self._run,
            beat=int(time.time() * 1000),
            keys=progress.keys,
            all_keys=progress.all_keys,
            tasks=progress.tasks,
            deliveries=progress.deliveries,
            **changes,
        )
        await _write(self._store, self._run)


async def _write(store: Store, run: AuditRun) -> None:
    await store.command("SET", _RUN, _encoded(run), "PX", _KEPT_MS)


def _encoded(value: Struct) -> str:
    return msgspec.json.encode(value).decode()
