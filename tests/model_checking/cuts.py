"""The append-only file, cut: whatever byte a crash ends it at, what comes back is what some script had left.

    python -m tests.model_checking.cuts [--server redis] [--bytes 3000] [--every 1]

A busy server is killed; its file is cut at every one of its last bytes; a server is started on each cut. What it has
must be what was there after a whole number of scripts (no half of one), the audit must be clean, and from there a plain
worker must come to the end of everything.
"""

import argparse
import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from core.audit.invariant import taken_apart
from core.model.states import Status
from core.redis.keys import Lifetime
from tests.model_checking.recorded_log import Busy, Mark, items, log_of, state_of
from tests.support.servers import Server, program_of
from tests.support.stack import HOUR, Stack

_ROUNDS = 20


@dataclass(frozen=True)
class Recorded:
    """A busy server's directory after its death, and its last scripts."""

    directory: Path
    marks: Sequence[Mark]
    log: bytes

    def whole_at(self, cut: int) -> Mark:
        """The last script of which everything is before the cut."""
        return max((mark for mark in self.marks if mark.size <= cut), key=lambda mark: mark.size)

    def cuts(self, count: int, every: int = 1) -> list[int]:
        """Of the last `count` bytes every one; or every so many, and those beside which a command begins."""
        first = max(self.marks[0].size, len(self.log) - count)
        chosen = set(range(first, len(self.log) + 1, every)) | {mark.size for mark in self.marks if mark.size >= first}
        if every > 1:
            chosen |= {at for at in _seams(self.log, first) if first <= at <= len(self.log)}
        return sorted(chosen)


def _seams(log: bytes, first: int) -> Iterator[int]:
    """Beside where a command begins."""
    at = log.find(b"\r\n*", first)
    while at != -1:
        yield from range(at + 1, at + 5)
        at = log.find(b"\r\n*", at + 1)


async def record(directory: Path, program: Path) -> Recorded:
    """A busy server, killed after its last script."""
    server = Server(directory, program)
    server.start()
    try:
        stack = await Stack.open(server)
        busy = Busy(stack, directory)
        await busy.work()
        await busy.last_steps()
        await stack.close()
    finally:
        server.kill()
    return Recorded(directory, busy.marks, log_of(directory).read_bytes())


class Cutter:
    """Starts a server on cut after cut, in a directory of its own."""

    def __init__(self, recorded: Recorded, directory: Path, program: Path) -> None:
        self._recorded = recorded
        shutil.copytree(recorded.directory, directory, ignore=shutil.ignore_patterns("socket"))
        self._log = log_of(directory)
        self._server = Server(directory, program)
        self._drained: set[str] = set()

    async def try_all(self, cuts: Sequence[int]) -> None:
        """Raises AssertionError that names the first bad cut."""
        for cut in cuts:
            self._log.write_bytes(self._recorded.log[:cut])
            self._server.start()
            try:
                await self._judge(cut)
            finally:
                self._server.kill()

    async def _judge(self, cut: int) -> None:
        mark, stack = self._recorded.whole_at(cut), await Stack.open(self._server)
        try:
            found = state_of(await stack.dump())
            different = sorted(
                name for name in found.keys() | mark.state.keys() if found.get(name) != mark.state.get(name)
            )
            assert not different, f"cut at byte {cut}: not as after “{mark.script}”: {different}"
            await stack.audit()
            # What is equal drains equally.
            if mark.script not in self._drained:
                self._drained.add(mark.script)
                left = await drained(stack)
                assert not left, f"cut at byte {cut}, after “{mark.script}”: still there: {left}"
        finally:
            await stack.close()


async def drained(stack: Stack) -> list[str]:
    """Keys of work that a plain worker leaves behind."""
    left = ["everything"]
    for _ in range(_ROUNDS):
        stack.passes(2 * HOUR)
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
    kinds = {name: taken_apart(name) for name in names}
    is_work = {name: kind is None or kind[0].lifetime is Lifetime.WORK for name, kind in kinds.items()}
    return [name for name in names if is_work[name] and not (":task:" in name and "ended" in names[name].value)]


async def main(kind: str, count: int, every: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        program = program_of(kind)
        recorded = await record(Path(place) / "busy", program)
        cuts = recorded.cuts(count, every)
        whole = [f"{after.script} ({after.size - before.size} bytes)" for before, after in pairwise(recorded.marks)]
        print(f"{len(recorded.log)} bytes; the last scripts: {', '.join(whole)}")  # noqa: T201 - a command
        began = time.monotonic()
        await Cutter(recorded, Path(place) / "cut", program).try_all(cuts)
        took = time.monotonic() - began
        print(f"{len(cuts)} cuts of the last {count} bytes in {took:.0f} s: each is as after a whole script")  # noqa: T201


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", choices=["valkey", "redis"], default="valkey")
    parser.add_argument("--bytes", type=int, default=3000)
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    asyncio.run(main(given.server, given.bytes, given.every))
