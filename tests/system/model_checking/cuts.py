"""Cuts the append-only file of a busy server at every byte, as a crash may, and starts a server on each cut.

The state after the start must be the state after a whole number of scripts (never half a script), the audit must be
clean, and a plain worker must complete all work from there. `./ada prove cuts` runs it on every byte.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.audit.invariants.invariant import parse_key
from core.model.states import Status
from core.redis.keys import Lifetime
from tests.support.servers import Server
from tests.support.stack import HOUR, Stack
from tests.system.model_checking.recorded_log import Mark, RecordedWorkload, comparable, items, log_of

_ROUNDS = 20


@dataclass(frozen=True)
class Recorded:
    """The directory of a busy server after it was killed, and the marks of its last scripts."""

    directory: Path
    marks: Sequence[Mark]
    log: bytes

    def whole_at(self, cut: int) -> Mark:
        """The last script that lies completely before the cut."""
        return max((mark for mark in self.marks if mark.size <= cut), key=lambda mark: mark.size)

    def cuts(self, count: int, every: int = 1) -> list[int]:
        """Where to cut: every `every`th of the last `count` bytes, and the bytes around the start of each command."""
        first = max(self.marks[0].size, len(self.log) - count)
        chosen = set(range(first, len(self.log) + 1, every)) | {mark.size for mark in self.marks if mark.size >= first}
        if every > 1:
            chosen |= {at for at in _command_starts(self.log, first) if first <= at <= len(self.log)}
        return sorted(chosen)


def _command_starts(log: bytes, first: int) -> Iterator[int]:
    """The bytes around the start of each command."""
    at = log.find(b"\r\n*", first)
    while at != -1:
        yield from range(at + 1, at + 5)
        at = log.find(b"\r\n*", at + 1)


async def record(directory: Path, program: Path) -> Recorded:
    """Runs the workload on a server and kills it after the last script."""
    server = Server(directory, program)
    server.start()
    try:
        stack = await Stack.open(server)
        workload = RecordedWorkload(stack, directory)
        await workload.work()
        await workload.last_steps()
        await stack.close()
    finally:
        server.kill()
    return Recorded(directory, workload.marks, log_of(directory).read_bytes())


class Cutter:
    """Starts a server on cut after cut, in a directory of its own."""

    def __init__(self, recorded: Recorded, directory: Path, program: Path) -> None:
        self._recorded = recorded
        shutil.copytree(recorded.directory, directory, ignore=shutil.ignore_patterns("socket"))
        self._log = log_of(directory)
        self._server = Server(directory, program)
        self._drained: set[str] = set()

    async def try_all(self, cuts: Sequence[int]) -> None:
        """Raises AssertionError with the first bad cut."""
        for cut in cuts:
            self._log.write_bytes(self._recorded.log[:cut])
            self._server.start()
            try:
                await self._check(cut)
            finally:
                self._server.kill()

    async def _check(self, cut: int) -> None:
        mark, stack = self._recorded.whole_at(cut), await Stack.open(self._server)
        try:
            found = comparable(await stack.dump())
            different = sorted(
                name for name in found.keys() | mark.state.keys() if found.get(name) != mark.state.get(name)
            )
            assert not different, f"cut at byte {cut}: differs from the state after “{mark.script}”: {different}"
            await stack.audit()
            # Equal states drain equally.
            if mark.script not in self._drained:
                self._drained.add(mark.script)
                left = await drained(stack)
                assert not left, f"cut at byte {cut}, after “{mark.script}”: these keys are left: {left}"
        finally:
            await stack.close()


async def drained(stack: Stack) -> list[str]:
    """The keys of work that are left after a plain worker has completed all it can."""
    left = ["everything"]
    for _ in range(_ROUNDS):
        stack.advance_clock(2 * HOUR)
        await stack.queue.kick_some("t", 100)
        await stack.finish_all("t")
        for task in await stack.take("echo", 100):
            await stack.queue.settle(task, outcomes=items(task, Status.SENT))
        left = _work(await stack.dump())
        if not left:
            break
    await stack.audit()
    return left


def _work(names: object) -> list[str]:
    assert isinstance(names, dict)
    kinds = {name: parse_key(name) for name in names}
    is_work = {name: kind is None or kind[0].lifetime is Lifetime.WORK for name, kind in kinds.items()}
    return [name for name in names if is_work[name] and not (":task:" in name and "ended" in names[name].value)]
