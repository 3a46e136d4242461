"""The supervisor, on real processes."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.processes.supervisor import Facts, Part, PartEnded, Supervisor
from tests.support.waiting import until

BEGIN = "from cli.processes.supervisor import announce; import os, sys, time, signal"
READY = f"{BEGIN}; announce(pid=os.getpid())"


class Up:
    """A supervisor and what was said in it."""

    def __init__(self, grace: float = 10) -> None:
        self.said: list[tuple[str, str]] = []
        self.supervisor = Supervisor(lambda part, line: self.said.append((part, line)), grace)

    def start(self, script: str, name: str = "part", rank: int = 1, **environment: str) -> asyncio.Future[Facts]:
        part = Part(name, (sys.executable, "-c", script), rank, environment)
        return self.supervisor.start(part)

    def lines(self, name: str = "part") -> list[str]:
        return [line for part, line in self.said if part == name]


@pytest.fixture
async def up() -> AsyncIterator[Up]:
    made = Up()
    yield made
    await made.supervisor.stop()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_part_tells_its_facts_when_it_is_ready_and_its_lines_are_passed_on(up: Up) -> None:
    facts = await up.start(f"print('hello'); {READY}; print('on we go', file=sys.stderr); time.sleep(60)")
    assert is_alive(facts["pid"])
    await until(lambda: up.lines() == ["hello", "ready", "on we go"])


async def test_a_part_gets_its_own_environment(up: Up) -> None:
    await up.start(f"{READY}; print(os.environ['ADA_REDIS_URL']); time.sleep(60)", ADA_REDIS_URL="redis://here")
    await until(lambda: up.lines() == ["ready", "redis://here"])


async def test_a_part_that_is_killed_starts_again(up: Up) -> None:
    facts = await up.start(f"import os; print(f'I am {{os.getpid()}}'); {READY}; time.sleep(60)")
    os.kill(facts["pid"], signal.SIGKILL)
    await until(lambda: len([line for line in up.lines() if line.startswith("I am")]) == 2)
    assert "ended (signal SIGKILL), starts again in 0.5 s" in up.lines()


async def test_a_part_that_needs_an_operator_is_not_started_again(up: Up) -> None:
    await up.start(f"{READY}; print('no account'); sys.exit(3)")
    await until(lambda: up.supervisor.has_ended("part"))
    assert up.lines() == ["ready", "no account", "stopped for good (exit code 3)"]


async def test_who_waits_for_a_part_that_never_becomes_ready_is_told(up: Up) -> None:
    with pytest.raises(PartEnded, match="part stopped for good"):
        await up.start("raise SystemExit(2)")


async def test_parts_end_in_the_order_of_their_ranks(up: Up) -> None:
    farewell = "signal.signal(signal.SIGTERM, lambda *_: (print('bye'), sys.exit(0)))"
    obedient = f"{BEGIN}; {farewell}; {READY}; time.sleep(60)"
    await asyncio.gather(*(up.start(obedient, name, rank) for rank, name in enumerate(["store", "serve", "courier"])))
    await up.supervisor.stop()
    assert [part for part, line in up.said if line == "bye"] == ["courier", "serve", "store"]


async def test_a_part_that_ignores_the_request_to_end_is_ended_by_force() -> None:
    up = Up(grace=0.2)
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    facts = await up.start(f"{deaf}; {READY}; time.sleep(60)")
    await up.supervisor.stop()
    assert not is_alive(facts["pid"])


async def test_a_line_longer_than_any_limit_does_not_stop_the_part(up: Up) -> None:
    await up.start(f"{READY}; print('x' * 3_000_000); print('after'); time.sleep(60)")
    await until(lambda: up.lines()[-1:] == ["after"])


async def test_children_end_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    script = f"""
import asyncio, os, signal, sys
from cli.processes.supervisor import Part, Supervisor
async def main():
    supervisor = Supervisor(lambda part, line: None)
    facts = await supervisor.start(Part("child", (sys.executable, "-c", {READY + "; time.sleep(60)"!r}), 1))
    print(facts["pid"], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    ended = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    child = int(ended.stdout)
    await until(lambda: not is_alive(child))
