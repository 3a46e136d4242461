"""The supervisor, with real child processes."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cli.processes.parts import PartTracker, now_ms
from cli.processes.supervisor import Announcement, ChildSpec, ProcessFailed, Supervisor
from core.model.parts import PartState, faulty
from tests.support.waiting import until

IMPORTS = "from cli.processes.supervisor import announce; import os, signal, sys"
READY = f"{IMPORTS}; announce(pid=os.getpid())"


class RecordingSupervisor:
    """A supervisor that records the lines of its children."""

    def __init__(self, stop_timeout: float = 10) -> None:
        self.output: list[tuple[str, str]] = []
        self.supervisor = Supervisor(lambda name, line: self.output.append((name, line)), stop_timeout)

    def start(
        self, script: str, name: str = "child", stage: int = 1, *, needed: bool = False, **environment: str
    ) -> asyncio.Future[Announcement]:
        command = (sys.executable, "-c", script)
        return self.supervisor.start(ChildSpec(name, command, stage, environment, needed=needed))

    def lines(self) -> list[str]:
        return [line for _, line in self.output]

    def pid(self) -> int:
        """Return the number that a child has printed last, its process's."""
        return int([line for line in self.lines() if line.isdecimal()][-1])


@pytest.fixture
async def children() -> AsyncIterator[RecordingSupervisor]:
    recording = RecordingSupervisor()
    yield recording
    await recording.supervisor.stop()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_child_announces_that_it_is_ready_and_its_lines_are_printed(
    children: RecordingSupervisor,
) -> None:
    ready = await children.start(f"print('hello'); {READY}; print('running', file=sys.stderr); signal.pause()")
    assert is_alive(ready["pid"])
    await until(lambda: children.lines() == ["hello", "ready", "running"])


async def test_a_child_has_its_own_environment(children: RecordingSupervisor) -> None:
    await children.start(f"{READY}; print(os.environ['ADA_REDIS_URL']); signal.pause()", ADA_REDIS_URL="redis://here")
    await until(lambda: children.lines() == ["ready", "redis://here"])


async def test_a_killed_child_is_restarted(children: RecordingSupervisor) -> None:
    ready = await children.start(f"import os; print(f'I am {{os.getpid()}}'); {READY}; signal.pause()")
    os.kill(ready["pid"], signal.SIGKILL)
    await until(lambda: len([line for line in children.lines() if line.startswith("I am")]) == 2)
    assert "ended (signal SIGKILL), restarts in 0.5 s" in children.lines()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_child_that_somebody_terminates_is_restarted(children: RecordingSupervisor, number: int) -> None:
    ends_in_order = f"signal.signal({number}, lambda *_: sys.exit(0))"
    ready = await children.start(f"{IMPORTS}; {ends_in_order}; {READY}; signal.pause()")
    os.kill(ready["pid"], number)
    await until(lambda: children.lines() == ["ready", "ended (exit code 0), restarts in 0.5 s", "ready"], within=60)
    (part,) = children.supervisor.parts
    assert (part.state, part.ends, part.reason) == ("running", 1, "exit code 0")
    assert faulty([part], part.at) == [], "once is no fault"


async def test_a_child_that_ends_again_and_again_is_faulty_until_it_has_run_for_a_minute(
    children: RecordingSupervisor,
) -> None:
    children.start("import sys; sys.exit('ada: the provider is away')")
    await until(lambda: children.supervisor.parts[0].ends == 2, within=60)
    (part,) = faulty(children.supervisor.parts, now_ms())
    last = "exit code 1: the provider is away"
    assert part.fault == f"should run and has ended 2 times in a row, the last time with {last}"
    runs = replace(part, state=PartState.RUNNING)
    assert faulty([runs], runs.at + 59_000) == [runs]
    assert faulty([runs], runs.at + 61_000) == []


async def test_a_part_is_faulty_if_it_does_not_get_ready_and_its_second_end_after_a_minute_is_the_first() -> None:
    tracker = PartTracker("vk")
    assert faulty([tracker.part], tracker.part.at + 119_000) == []
    assert [one.fault for one in faulty([tracker.part], tracker.part.at + 121_000)] == ["should run and is not ready"]
    assert [tracker.ends("exit code 1") for _ in range(7)] == [0.5, 1, 2, 5, 10, 30, 30]
    tracker.is_ready()
    tracker.part = replace(tracker.part, at=tracker.part.at - 61_000)
    assert (tracker.ends("exit code 1"), tracker.part.ends) == (0.5, 1)


def test_a_part_that_stops_for_good_after_other_ends_is_stopped_since_the_last_one() -> None:
    tracker = PartTracker("vk")
    tracker.ends("exit code 1")
    tracker.part = replace(tracker.part, since=tracker.part.since - 3_600_000)
    tracker.stops("exit code 2")
    assert (tracker.part.ends, tracker.part.since) == (2, tracker.part.at)


async def test_a_child_that_cannot_be_started_is_tried_again(children: RecordingSupervisor) -> None:
    children.supervisor.start(ChildSpec("child", ("x" * 3_000_000,), 1))
    await until(lambda: children.supervisor.parts[0].ends == 2, within=60)
    assert "Argument list too long" in children.supervisor.parts[0].reason


async def test_a_child_that_ends_while_all_stop_is_restarted_only_if_the_others_store_in_it(
    children: RecordingSupervisor,
) -> None:
    """As when a service manager sends SIGTERM to every process at once."""
    slowly = "import threading; signal.signal(signal.SIGTERM, lambda *_: threading.Timer(2, os._exit, [0]).start())"
    on_sigterm = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))"
    pause = "[signal.pause() for _ in range(9)]"
    await children.start(f"{IMPORTS}; {slowly}; {READY}; {pause}", "courier", 3)
    ready = {
        name: await children.start(f"{IMPORTS}; {on_sigterm}; {READY}; {pause}", name, stage)
        for name, stage in (("store", 0), ("serve", 1))
    }
    stopping = asyncio.create_task(children.supervisor.stop())
    await asyncio.sleep(0)
    for one in ready.values():
        os.kill(one["pid"], signal.SIGTERM)
    await stopping
    assert [name for name, line in children.output if line.startswith("ended")] == ["store"]


async def test_a_child_that_needs_an_operator_is_not_restarted(children: RecordingSupervisor) -> None:
    await children.start(f"{READY}; print('no account'); sys.exit(3)")
    await until(lambda: children.supervisor.has_ended("child"))
    assert children.lines() == ["ready", "no account", "stopped for good (exit code 3)"]
    (part,) = faulty(children.supervisor.parts, now_ms())
    assert part.fault == "should run and has stopped for good: exit code 3: no account"


async def test_a_start_asked_for_while_a_child_ends_is_carried_out_once(children: RecordingSupervisor) -> None:
    script = (
        f"{IMPORTS}; signal.signal(signal.SIGTERM, lambda *_: sys.exit(3)); print(os.getpid()); {READY}; signal.pause()"
    )
    first = await children.start(script)
    assert children.supervisor.start_again(f"-c {script}")
    os.kill(first["pid"], signal.SIGTERM)
    await until(lambda: children.lines().count("ready") == 2, within=60)
    os.kill(children.pid(), signal.SIGTERM)
    await until(lambda: children.supervisor.has_ended("child"), within=60)
    assert children.supervisor.start_again(f"-c {script}")
    await until(lambda: children.lines().count("ready") == 3, within=60)
    assert faulty(children.supervisor.parts, now_ms()) == [], "the ends before the start by hand do not count"
    os.kill(children.pid(), signal.SIGTERM)
    await until(lambda: children.supervisor.has_ended("child"), within=60)
    assert children.lines().count("stopped for good (exit code 3)") == 2


async def test_a_child_that_ends_before_it_is_ready_raises_an_error(children: RecordingSupervisor) -> None:
    with pytest.raises(ProcessFailed, match="child stopped for good"):
        await children.start("raise SystemExit(2)")


async def test_a_child_that_others_need_is_not_started_again_if_it_was_never_ready(
    children: RecordingSupervisor,
) -> None:
    with pytest.raises(ProcessFailed, match=r"^child stopped for good \(exit code 1\): the port is taken$"):
        await children.start("import sys; sys.exit('ada: the port is taken')", needed=True)
    assert children.lines() == ["ada: the port is taken", "stopped for good (exit code 1)"]


async def test_a_child_that_others_need_is_restarted_once_it_was_ready(children: RecordingSupervisor) -> None:
    ready = await children.start(f"{READY}; signal.pause()", needed=True)
    os.kill(ready["pid"], signal.SIGKILL)
    await until(lambda: children.lines().count("ready") == 2, within=60)


async def test_children_are_stopped_in_the_order_of_their_stages(children: RecordingSupervisor) -> None:
    on_sigterm = "signal.signal(signal.SIGTERM, lambda *_: (print('bye'), sys.exit(0)))"
    script = f"{IMPORTS}; {on_sigterm}; {READY}; signal.pause()"
    await asyncio.gather(
        *(children.start(script, name, stage) for stage, name in enumerate(["store", "serve", "courier"]))
    )
    await children.supervisor.stop()
    assert [name for name, line in children.output if line == "bye"] == ["courier", "serve", "store"]


async def test_a_child_that_ignores_sigterm_is_killed() -> None:
    children = RecordingSupervisor(stop_timeout=0.2)
    ignore_sigterm = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    ready = await children.start(f"{ignore_sigterm}; {READY}; signal.pause()")
    await children.supervisor.stop()
    assert not is_alive(ready["pid"])


async def test_a_very_long_line_does_not_stop_the_child(children: RecordingSupervisor) -> None:
    await children.start(f"{READY}; print('x' * 3_000_000); print('after'); signal.pause()")
    await until(lambda: children.lines()[-1:] == ["after"])


async def test_children_end_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    script = f"""
import asyncio, os, signal, sys
from cli.processes.supervisor import ChildSpec, Supervisor
async def main():
    supervisor = Supervisor(lambda name, line: None)
    ready = await supervisor.start(ChildSpec("child", (sys.executable, "-c", {READY + "; signal.pause()"!r}), 1))
    print(ready["pid"], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    ended = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, timeout=60
    )
    child = int(ended.stdout)
    await until(lambda: not is_alive(child))
