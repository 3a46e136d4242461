"""A run of the queue machine that once failed, as Hypothesis found it, as a list of rule calls."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.core.queue.model import TUBES, Options
from tests.core.queue.test_machine import Machine
from tests.support.recorded_run import RecordedRun, drawn
from tests.support.servers import Server

TASK: dict[str, Any] = {
    "body": "",
    "lane": "",
    "tenant": "a",
    "priority": 0,
    "due": None,
    "expires": None,
    "attempts": 0,
    "kind": "",
    "user": "",
    "tags": (),
    "reply": "",
}


@pytest.fixture
def machine(server: Server) -> Machine:
    Machine.server = server
    return Machine()


@pytest.fixture
def run(machine: Machine) -> Iterator[RecordedRun]:
    invariants = [
        machine.the_audit_is_clean,
        machine.every_task_is_as_in_the_model,
        machine.the_statistics_are_those_of_the_model,
        machine.clients_are_notified_of_every_end_once,
    ]
    with RecordedRun(machine, invariants) as recorded:
        for tube in TUBES:
            recorded(machine.create, tube, Options())
        yield recorded


def claim(run: RecordedRun, machine: Machine, limit: int, lease: int) -> None:
    run(machine.claim, data=drawn(TUBES[0]), owner="one", limit=limit, lease=lease, account="")


def test_a_task_returned_after_its_expiry_expires_at_the_next_claim(run: RecordedRun, machine: Machine) -> None:
    """The model let it wait. It expired while it was taken, and its retry is due in a minute."""
    run(machine.put, TUBES[0], [{**TASK, "expires": 2}, TASK, {**TASK, "expires": 1}])
    overdue, kept, buried = machine.model.jobs.values()
    run(machine.bury, data=drawn(buried))
    run(machine.time_passes, time=1)
    claim(run, machine, limit=3, lease=2)
    run(machine.use_token, data=drawn(kept, "done", ""), verb="finish")
    run(machine.time_passes, time=1)
    run(machine.time_passes, time=1)
    run(machine.use_token, data=drawn(overdue, 1, ""), verb="extend")
    run(machine.use_token, data=drawn(overdue, 1, "", ""), verb="retry")
    run(machine.put, TUBES[0], [TASK])
    claim(run, machine, limit=1, lease=1)
    assert overdue.id not in machine.model.jobs, "it has expired"
