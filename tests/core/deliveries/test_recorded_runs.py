"""Runs of the delivery machine that once failed, as Hypothesis found and shrunk them.

Each run is a list of rule calls. The audit and the comparison with the model follow after every call.
"""

from collections.abc import Iterator

import pytest

from core.model.states import Status
from tests.core.deliveries.delivery_model import Delivery
from tests.core.deliveries.test_delivery_machine import Machine
from tests.support.recorded_run import RecordedRun, drawn
from tests.support.servers import Server

VK, SMS = "vk", "sms"


@pytest.fixture
def machine(server: Server) -> Machine:
    Machine.server = server
    return Machine()


@pytest.fixture
def run(machine: Machine) -> Iterator[RecordedRun]:
    invariants = [machine.the_audit_is_clean, machine.the_histories_have_the_written_outcomes]
    with RecordedRun(machine, invariants) as recorded:
        yield recorded


def enqueue(run: RecordedRun, machine: Machine, people: list[list[str]], life: int, due: int | None = None) -> Delivery:
    """Enqueues a delivery without a lane; `due` and `life` in minutes."""
    run(machine.enqueue, people=people, due=due, lane=None, life=life)
    return machine.deliveries[-1]


def test_a_delivery_report_after_the_cancel_of_the_delivery_is_recorded(run: RecordedRun, machine: Machine) -> None:
    run(machine.time_passes, minutes=1)
    delivery = enqueue(run, machine, [[VK]], life=2)
    run(machine.cancel, data=drawn(delivery))
    run(machine.cancel, data=drawn(delivery))
    run(machine.report, data=drawn(delivery, ("0", VK, 0)), status=Status.SENT)


def test_a_delivery_report_of_a_scheduled_delivery_changes_nothing(run: RecordedRun, machine: Machine) -> None:
    """Its recipient is cancelled, then it falls due and expires without a courier."""
    run(machine.time_passes, minutes=1)
    delivery = enqueue(run, machine, [[VK]], due=1, life=2)
    run(machine.report, data=drawn(delivery), status=Status.SENT)
    run(machine.cancel_some, data=drawn(delivery, ["0"]))
    run(machine.time_passes, minutes=2)


def test_a_delivery_that_fell_due_without_a_courier_can_be_cancelled(run: RecordedRun, machine: Machine) -> None:
    run(machine.time_passes, minutes=2)
    delivery = enqueue(run, machine, [[VK, SMS]], due=2, life=6)
    run(machine.reschedule, data=drawn(delivery), due=1)
    run(machine.time_passes, minutes=1)
    run(machine.report, data=drawn(delivery, ("0", VK, 0)), status=Status.SENT)
    for _ in range(3):
        run(machine.cancel, data=drawn(delivery))


def test_a_finished_delivery_of_cancelled_recipients_is_not_cancelled_again(run: RecordedRun, machine: Machine) -> None:
    """All recipients of the first delivery are cancelled one by one while a second delivery falls due."""
    run(machine.claim_parcels, VK, 3, 3)
    first = enqueue(run, machine, [[VK, SMS], []], life=5)
    run(machine.cancel_some, data=drawn(first, ["0"]))
    run(machine.cancel, data=drawn(first))
    run(machine.cancel_some, data=drawn(first, ["0", "0", "1", "0", "0", "1"]))
    run(machine.cancel_some, data=drawn(first, ["0", "0"]))
    run(machine.enqueue, people=[[VK, SMS], []], due=3, lane="x", life=3)
    second = machine.deliveries[-1]
    run(machine.time_passes, minutes=3)
    run(machine.cancel, data=drawn(first))
    run(machine.claim_parcels, VK, 1, 3)
    run(machine.report, data=drawn(second, ("0", VK, 0)), status=Status.READ)
    run(machine.cancel, data=drawn(first))


def test_entries_of_a_lost_parcel_in_a_lane_end_as_told(run: RecordedRun, machine: Machine) -> None:
    """The parcel is claimed after a long wait and settled with `sending` and `unknown` after its lease."""
    run(machine.enqueue, people=[[VK, SMS], [VK]], due=None, lane="x", life=6)
    first = machine.deliveries[-1]
    run(machine.time_passes, minutes=2)
    run(machine.retry, data=drawn(first), status=Status.UNKNOWN)
    run(machine.time_passes, minutes=3)
    run(machine.claim_parcels, VK, 1, 3)
    run(machine.enqueue, people=[[], [SMS], [], [SMS, VK]], due=2, lane="x", life=4)
    second = machine.deliveries[-1]
    run(machine.time_passes, minutes=3)
    run(machine.cancel_some, data=drawn(first, ["1", "1", "1"]))
    run(machine.reschedule, data=drawn(second), due=1)
    run(machine.write_outcomes, data=drawn(machine.claims[0], [Status.SENDING, Status.UNKNOWN]), settles=True)


def test_reports_before_during_and_after_the_attempt_keep_the_later_evidence(
    run: RecordedRun, machine: Machine
) -> None:
    """Two recipients fail by report before the parcel is claimed; it is released, claimed again and cancelled."""
    run(machine.enqueue, people=[[VK, SMS], [SMS, VK]], due=None, lane="x", life=3)
    first = machine.deliveries[-1]
    run(machine.time_passes, minutes=2)
    run(machine.report, data=drawn(first, ("0", VK, 0)), status=Status.FAILED)
    run(machine.report, data=drawn(first, ("1", SMS, 1)), status=Status.FAILED)
    run(machine.claim_parcels, SMS, 3, 1)
    run(machine.retry, data=drawn(first), status=Status.UNKNOWN)
    run(machine.release, data=drawn(machine.claims[0]))
    run(machine.retry, data=drawn(first), status=Status.UNKNOWN)
    run(machine.claim_parcels, SMS, 3, 3)
    run(machine.cancel, data=drawn(first))
    run(machine.report, data=drawn(first, ("0", VK, 0)), status=Status.READ)
    run(machine.report, data=drawn(first, ("0", SMS, 0)), status=Status.DELIVERED)
    run(machine.enqueue, people=[[VK, SMS]] * 4, due=None, lane="x", life=4)
    second = machine.deliveries[-1]
    run(machine.reschedule, data=drawn(first), due=2)
    run(machine.release, data=drawn(machine.claims[0]))
    run(machine.cancel, data=drawn(second))
    run(machine.retry, data=drawn(first), status=Status.FAILED)
    run(machine.report, data=drawn(second, ("2", SMS, 2)), status=Status.SENT)


def test_a_recipient_cancelled_during_the_attempt_is_unknown(run: RecordedRun, machine: Machine) -> None:
    """The model expected `cancelled`, but the message may have been sent (D-38)."""
    delivery = enqueue(run, machine, [[], [SMS, VK], [], [VK]], life=4)
    run(machine.claim_parcels, SMS, 1, 3)
    run(machine.time_passes, minutes=3)
    run(machine.report, data=drawn(delivery, ("1", VK, 0)), status=Status.SENT)
    run(machine.write_outcomes, data=drawn(machine.claims[0], [None]), settles=True)
    run(machine.claim_parcels, VK, 1, 1)
    run(machine.cancel_some, data=drawn(delivery, ["3"]))
    run(machine.write_outcomes, data=drawn(machine.claims[0], [Status.SENDING]), settles=True)
    assert delivery.written["3", VK] is Status.UNKNOWN


def test_a_recipient_cancelled_after_an_attempt_without_an_outcome_is_unknown(
    run: RecordedRun, machine: Machine
) -> None:
    delivery = enqueue(run, machine, [[], [SMS, VK], [], [VK]], life=4)
    run(machine.claim_parcels, SMS, 1, 3)
    run(machine.time_passes, minutes=3)
    run(machine.report, data=drawn(delivery, ("1", VK, 0)), status=Status.SENT)
    run(machine.claim_parcels, VK, 2, 1)
    run(machine.time_passes, minutes=1)
    run(machine.write_outcomes, data=drawn(machine.claims[-1], [None]), settles=False)
    run(machine.write_outcomes, data=drawn(machine.claims[-1], [Status.SENDING]), settles=True)
    run(machine.cancel_some, data=drawn(delivery, ["1", "3", "0", "2"]))
    assert delivery.written["3", VK] is Status.UNKNOWN
