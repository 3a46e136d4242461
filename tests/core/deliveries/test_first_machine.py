"""The strategy `first` with any outcomes, lost workers, delivery reports, cancellations and retries (D-36).

Workers are simulated step by step, so each can be lost between any two scripts. A worker attempts exactly the entries
that a courier would. Whenever it may attempt one, the earlier channels of that recipient must have failed, or their
wait must be over.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from core.deliveries.channels import ChannelFacts, Channels
from core.deliveries.histories.reader import HistoryReader
from core.model.delivery import Recipient, Strategy
from core.model.history import OutcomeRecord, RecipientRecord
from core.model.history_key import HistoryKey
from core.model.states import OPEN, REACHED, DeliveryState, Reason, Status
from core.queue import Task
from couriers.sending.interface import NEVER
from couriers.sending.parcel import Parcel, PendingEntries, PendingEntry, checkpoint_of, reached_earlier
from tests.support import limits
from tests.support.every_verb import report_token
from tests.support.hypothesis_settings import SETTINGS, WITHOUT_SHRINKING
from tests.support.servers import Server, on_both_servers
from tests.support.stack import TENANT, FakeCourier, Stack, order
from tests.support.waiting import until

T = TypeVar("T")

EXAMPLES, LONG_EXAMPLES, STEPS = 5, 300, 30
MINUTE = timedelta(minutes=1)
CHANNELS = ("telegram", "vk", "sms")
ATTEMPT_ENDS = [Status.SENT, Status.FAILED, Status.FAILED, Status.UNKNOWN, None]
CONFIRMED = (Status.DELIVERED, Status.READ)

contacts = st.lists(st.sampled_from(CHANNELS), unique=True)


@dataclass
class Sent:
    """A delivery. `touched`: recipients with an outcome that was, at some time, not a failure."""

    key: HistoryKey
    people: list[list[str]]
    wait: timedelta | None
    touched: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)


class Machine(RuleBasedStateMachine):
    """Each example has its own server."""

    server: Server

    def __init__(self) -> None:
        super().__init__()
        self.server.empty()
        self.runner = asyncio.Runner()
        self.stack = self.wait(Stack.open(self.server))
        self.reader = HistoryReader(self.stack.store)
        self.deliveries: list[Sent] = []
        self.wait(self._announce_channels())

    async def _announce_channels(self) -> None:
        channels = Channels(self.stack.store, ())
        for channel in CHANNELS:
            await channels.register(channel, ChannelFacts(100), announces=True)

    def wait(self, doing: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(limits.bounded(doing))

    @rule(
        people=st.lists(contacts, min_size=1, max_size=4),
        waits=st.booleans(),
        lane=st.sampled_from([None, "x"]),
        order_of=st.permutations(CHANNELS),
    )
    def enqueue(self, people: list[list[str]], waits: bool, lane: str | None, order_of: Sequence[str]) -> None:
        recipients = [Recipient(str(n), contacts={c: [f"{c}{n}"] for c in found}) for n, found in enumerate(people)]
        wait = 2 * MINUTE if waits else None
        wanted = order(*recipients, channels=order_of, strategy=Strategy.FIRST, wait=wait, lane=lane)
        accepted = self.wait(self.stack.deliveries.enqueue(wanted))
        self.deliveries.append(Sent(accepted.key, people, wait))

    @rule(
        data=st.data(), channel=st.sampled_from(CHANNELS), dies=st.sampled_from(["no", "no", "no", "before", "after"])
    )
    def work(self, data: st.DataObject, channel: str, dies: str) -> None:
        """A worker claims a parcel, announces its attempts, and settles them, unless it dies before or after them."""
        for task in self.wait(self.stack.take(channel, 1, lease=MINUTE / 2)):
            parcel = Parcel.of(task)
            sent = next(one for one in self.deliveries if one.key == parcel.history_key)
            ready, others, unclear = self.wait(self.entries(task, parcel, channel))
            for pending in ready:
                self.check_turn(sent, channel, str(pending.entry.id), parcel)
            if dies == "before":
                continue
            announced = [pending.entry.item(Status.SENDING, attempts=1) for pending in ready]
            if announced:
                self.wait(self.stack.queue.extend(task, MINUTE / 2, announced))
            if dies == "after":
                sent.touched |= {str(pending.entry.id) for pending in ready}
                continue
            self.settle(data, task, sent, ready, others, unclear)

    async def entries(
        self, task: Task, parcel: Parcel, channel: str
    ) -> tuple[list[PendingEntry], list[PendingEntry], list[Any]]:
        """Entries to attempt, entries to leave, and outcomes without an attempt, as `ParcelExecutor` has them."""
        pending = PendingEntries(task, parcel, NEVER)
        await pending.compare(self.reader)
        closed = [one.entry.item(Status.UNKNOWN, Reason.CRASHED) for one in pending.unclear]
        ready = [one for one in pending.open if one.not_before <= task.claimed]
        reached = await reached_earlier(self.reader, parcel, channel, {one.entry.number for one in ready})
        closed += [
            one.entry.item(Status.SKIPPED, Reason.REACHED_ELSEWHERE) for one in ready if one.entry.number in reached
        ]
        others = [one for one in pending.open if one.not_before > task.claimed]
        return [one for one in ready if one.entry.number not in reached], others, closed

    def settle(
        self,
        data: st.DataObject,
        task: Task,
        sent: Sent,
        ready: list[PendingEntry],
        others: list[PendingEntry],
        closed: list[Any],
    ) -> None:
        left = list(others)
        for pending in ready:
            end = data.draw(st.sampled_from(ATTEMPT_ENDS))
            if end is None:
                left.append(pending)
                closed.append(pending.entry.item(Status.QUEUED, attempts=0))
            else:
                closed.append(pending.entry.item(end, attempts=1))
                if end is not Status.FAILED:
                    sent.touched.add(str(pending.entry.id))
        due = min((one.not_before for one in left), default=0)
        self.wait(self.stack.queue.settle(task, outcomes=closed, due=due, checkpoint=checkpoint_of(left)))

    def record(self, sent: Sent, recipient: str) -> RecipientRecord:
        history = self.wait(self.stack.history(sent.key))
        return next(one for one in history.recipients if str(one.id) == recipient)

    def check_turn(self, sent: Sent, channel: str, recipient: str, parcel: Parcel) -> None:
        for other, outcome in self.record(sent, recipient).outcomes.items():
            if other == channel:
                return
            assert self.allows_next(outcome, sent.wait), f"{recipient} in {channel}, although {other} is {outcome}"

    def allows_next(self, outcome: OutcomeRecord, wait: timedelta | None) -> bool:
        if outcome.status in (Status.SENT, Status.UNKNOWN) and wait and outcome.at:
            return self.stack.now() - outcome.at >= wait - timedelta(seconds=1)
        return outcome.status in (Status.FAILED, Status.NO_CONTACT, Status.SKIPPED, Status.CANCELLED)

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data(), status=st.sampled_from([Status.SENT, Status.DELIVERED, Status.READ, Status.FAILED]))
    def report(self, data: st.DataObject, status: Status) -> None:
        """A provider reports on a message that was, or may have been, sent."""
        sent = data.draw(st.sampled_from(self.deliveries))
        history = self.wait(self.stack.history(sent.key))
        possible = [
            (channel, str(record.id))
            for record in history.recipients
            for channel, outcome in record.outcomes.items()
            if outcome.status in (Status.SENT, Status.UNKNOWN, Status.DELIVERED, Status.SENDING)
        ]
        if not possible:
            return
        channel, recipient = data.draw(st.sampled_from(possible))
        numbers = [str(n) for n, found in enumerate(sent.people) if channel in found]
        token = self.wait(report_token(self.stack, sent.key, channel, numbers.index(recipient)))
        self.wait(self.stack.deliveries.record_report(token, status, ""))
        sent.touched.add(recipient)

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data())
    def cancel_whole(self, data: st.DataObject) -> None:
        sent = data.draw(st.sampled_from(self.deliveries))
        self.wait(self.stack.store.run("cancel", 0, sent.key.suffix, TENANT, 1, "[]"))
        sent.cancelled |= {str(n) for n in range(len(sent.people))}

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data(), statuses=st.lists(st.sampled_from([Status.FAILED, Status.UNKNOWN]), min_size=1, unique=True))
    def retry(self, data: st.DataObject, statuses: list[Status]) -> None:
        sent = data.draw(st.sampled_from(self.deliveries))
        if self.wait(self.stack.history(sent.key)).state is not DeliveryState.CANCELLED:
            self.wait(self.stack.deliveries.retry(sent.key, TENANT, statuses))

    @rule(minutes=st.integers(1, 3))
    def time_passes(self, minutes: int) -> None:
        self.stack.advance_clock(minutes * MINUTE)
        self.wait(self.stack.tick())

    @invariant()
    def the_audit_is_clean(self) -> None:
        self.wait(self.stack.audit())

    def teardown(self) -> None:
        """Every delivery ends, and every recipient that some channel may still reach is reached."""
        try:
            self.wait(self.deliver_all())
            for sent in self.deliveries:
                for record in self.wait(self.stack.history(sent.key)).recipients:
                    self.check_end(sent, record)
            self.wait(self.stack.end_everything())
        finally:
            self.wait(self.stack.close())
            limits.close(self.runner)

    def check_end(self, sent: Sent, record: RecipientRecord) -> None:
        statuses = [one.status for one in record.outcomes.values()]
        assert not set(statuses) & OPEN
        is_reached = bool(set(statuses) & REACHED)
        has_failed = set(statuses) <= {Status.FAILED, Status.NO_CONTACT}
        assert is_reached or has_failed or str(record.id) in sent.touched | sent.cancelled, statuses

    async def deliver_all(self) -> None:
        self.stack.advance_clock(5 * MINUTE)
        await self.stack.tick()
        for channel in CHANNELS:
            await self.stack.courier(FakeCourier(channel))
        await until(self.are_over, within=60, every=0.05)

    async def are_over(self) -> bool:
        self.stack.advance_clock(MINUTE / 6)
        return all([await self.stack._is_over(sent.key) for sent in self.deliveries])


@on_both_servers
@pytest.mark.timeout(limits.MACHINE)
def test_any_history_keeps_the_order_of_the_channels_and_ends(
    server: Server, request: pytest.FixtureRequest, long_form: bool
) -> None:
    machine = type("Machine", (Machine,), {"server": server})
    examples = request.config.getoption("--examples") or (LONG_EXAMPLES if long_form else EXAMPLES)
    run_state_machine_as_test(
        machine,
        settings=settings(
            SETTINGS if long_form else WITHOUT_SHRINKING, max_examples=examples, stateful_step_count=STEPS
        ),
    )
