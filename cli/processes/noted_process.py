"""Keeps the entry of this process in the register of processes, touches its health file, and checks whether the data of
the store are still those with which the process began; if not it begins anew (`core.processes.installation_mark`), as
it does for a changed account. It does what operators ask of it.

The entry carries the faulty parts of `./ada up`, too, which has no connection to the store (`cli.processes.parts`).

The entry is written every ten seconds, and at once when something changes. A process that ends in order removes it; one
that fails, or that an operator must repair, leaves the reason for a day.
"""

import asyncio
import logging
import os
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cli import VERSION
from cli.command import OPERATOR_NEEDED, CommandFailed
from cli.processes.parts import now_ms, read_note
from cli.processes.startup import StartAgain, request_stop, stop_to_start_again
from core.errors import AdaError, StoreError, StoreRefuses
from core.model.parts import UpPart, faulty
from core.processes import DataLoss, InstallationMark, ProcessRecord, ProcessRegister, ProcessState, RequestKind
from core.processes.register import BEAT
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store

log = logging.getLogger(__name__)

_REASON = 500
"""The most characters of a reason."""
LOOK = 2.0
"""Seconds between two checks of the mark of the installation, and at what operators ask for."""
NEW_ACCOUNT = "an account was changed at the console"
_LOOKS_TO_MOVE = 5
"""A process moves the mark so late that all others have seen a mark of old data before."""
_LAST_WRITE = 2.0
"""Seconds that a process which ends spends on its entry."""


class NotedProcess:
    """The entry of this process. `healthy`: the file that shows a container that the process works. `data`: the
    directory of ADA_DATA.
    """

    def __init__(
        self, store: Store, kind: str, name: str = "", healthy: Path | None = None, data: Path | None = None
    ) -> None:
        now, build = store.now_ms(), store.library.name.removeprefix("ada_")
        self.record = ProcessRecord(
            id=secrets.token_hex(8),
            kind=kind,
            name=name,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=f"{VERSION}+{build}",
            started=now,
            beat=now,
            since=now,
        )
        self._store = store
        self._register = ProcessRegister(store)
        self._healthy = healthy
        self._data = data
        self._changed = store.tubes_changed
        self.mark = InstallationMark(store)
        self.loss: DataLoss | None = None
        self.anew = ""  # why the process begins anew
        self.has_old_settings: Callable[[], Awaitable[bool]] | None = None
        self.test: Callable[[], Awaitable[None]] | None = None
        self._done = ""  # the token of the last request

    def note(self, **changes: Any) -> None:
        """Change fields of the entry; it is written soon."""
        self.record = replace(self.record, **changes)
        self._changed.set()

    def runs(self, **changes: Any) -> None:
        self.note(state=ProcessState.RUNNING, since=self._store.now_ms(), **changes)

    def ends(self, state: ProcessState, reason: str) -> None:
        self.note(state=state, since=self._store.now_ms(), reason=reason[:_REASON])

    async def begin(self) -> None:
        """Write the first entry in place of what the process before has left."""
        await self._logged(self.mark.begin())
        await self._logged(self._forget_predecessors())
        await self._logged(self._beat())

    async def keep(self) -> None:
        """Write the entry again and again, until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(BEAT.total_seconds()):
                    await self._changed.wait()
            self._changed.clear()
            await self._logged(self._beat())

    async def watch(self) -> None:
        """Wait until the store has lost data, note it, and stop the process as soon as it can be stopped."""
        for look in count(1):
            await asyncio.sleep(LOOK)
            if not self.anew:
                await self._logged(self._look(moves=look % _LOOKS_TO_MOVE == 0))
            if self.anew and stop_to_start_again():
                return

    async def _look(self, *, moves: bool) -> None:
        if loss := await self.mark.find_loss():
            await self.mark.note(loss)
            self.loss, self.anew = loss, loss.sentence
            return
        if moves:
            await self.mark.move()
        if self.has_old_settings and await self.has_old_settings():
            self.anew = NEW_ACCOUNT
            return
        request = await self._register.request_of(self.record.id)
        if request and request.token != self._done:
            self._done = request.token
            await self._do(request.kind)

    async def _do(self, kind: RequestKind) -> None:
        """Do what an operator has asked for."""
        log.info("asked by an operator: %s", kind)
        if kind is RequestKind.STOP:
            request_stop(threading.current_thread())
        elif kind is RequestKind.TEST and self.test:
            await self.test()
        elif kind in (RequestKind.QUIET, RequestKind.RESUME):
            self._store.is_quiet = kind is RequestKind.QUIET
            self.note(is_quiet=self._store.is_quiet)

    def answered(self, answer: str, *, is_refused: bool = False) -> None:
        """Note what the provider has said of the account."""
        self.note(answer=answer[:_REASON], answered=self._store.now_ms(), is_refused=is_refused)

    async def close(self) -> None:
        """Write the last entry, or remove it if the process ends in order."""
        is_fault = self.record.state in (ProcessState.FAILED, ProcessState.HALTED)
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_LAST_WRITE):
                await (self._register.write(self.record) if is_fault else self._register.remove(self.record.id))

    async def _logged(self, work: Any) -> None:
        """Await `work`; log a fault of the server, so that it does not end the process."""
        try:
            await work
        except StoreError as fault:
            log.debug("not noted as a process: %s", fault)

    async def _beat(self) -> None:
        parts = await asyncio.to_thread(self._faulty_parts)  # awaited first: the end may be noted meanwhile
        fault, now = next(iter(self._store.faults.values()), "")[:_REASON], self._store.now_ms()
        self.record = replace(
            self.record,
            beat=now,
            fault=fault,
            fault_since=(self.record.fault_since or now) if fault else 0,
            tubes=tuple(sorted(self._store.worked_tubes)),
            faulty_parts=parts,
        )
        with suppress(StoreRefuses):  # the server is there, though it is full
            await self._register.write(self.record)
        if self._healthy is not None:
            await asyncio.to_thread(self._healthy.touch)

    def _faulty_parts(self) -> Sequence[UpPart]:
        note = read_note(self._data) if self._data else None
        return faulty(note.parts, now_ms()) if note and note.is_up else ()

    async def _forget_predecessors(self) -> None:
        """Remove what the process before has left: its fault, or its entry if it was killed."""
        known = await self._register.list(self.record.started)
        gone = [one.id for one in known if self.record.is_successor_of(one) and not is_running(one)]
        await self._register.remove(*gone)


@asynccontextmanager
async def noted_process(
    store: Store, kind: str, name: str = "", healthy: Path | None = None, data: Path | None = None
) -> AsyncIterator[NotedProcess]:
    """Keep the entry of this process from its start to its end; an exception that ends it becomes its reason. Raises
    StartAgain after the end if the store has lost data.
    """
    process = NotedProcess(store, kind, name, healthy, data)
    await process.begin()
    beside = [
        asyncio.create_task(process.keep(), name="entry of this process"),
        asyncio.create_task(process.watch(), name="mark of the installation"),
    ]
    try:
        yield process
    except CommandFailed as fault:
        process.ends(ProcessState.HALTED if fault.code == OPERATOR_NEEDED else ProcessState.FAILED, str(fault))
        raise
    except Exception as fault:  # whatever ends the process is its reason
        if process.anew:
            raise StartAgain(process.anew) from fault
        reason = str(fault) if isinstance(fault, AdaError) else f"{type(fault).__name__}: {fault}"
        process.ends(ProcessState.FAILED, reason)
        raise
    finally:
        await cancel_and_wait(*beside)
        await process.close()
    if process.anew:
        raise StartAgain(process.anew)


def is_running(record: ProcessRecord) -> bool:
    """Return whether a process of this machine is there and has not noted its end."""
    if record.state in (ProcessState.FAILED, ProcessState.HALTED) or record.pid == os.getpid():
        return False
    try:
        os.kill(record.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
