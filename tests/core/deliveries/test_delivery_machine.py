"""Deliveries against a small model: outcomes, cancelling, rescheduling, retries and lost workers, in any order.

The model (`tests.core.deliveries.delivery_model`) knows each outcome that was written and the entries that must not be
attempted any more. The audit is the invariant. `./ada prove histories` runs many more examples.
"""

import asyncio
import time
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from core.deliveries.histories.encoding import ChannelPlan, load_plan
from core.deliveries.histories.reader import HistoryReader
from core.model.clock import from_ms
from core.model.delivery import Recipient
from core.model.history import History
from core.model.json_form import compact_json
from core.model.states import OPEN, DeliveryState, Status
from couriers.sending.parcel import Parcel
from tests.core.deliveries.delivery_model import ClaimedParcel, Delivery, supersedes
from tests.support import limits
from tests.support.every_verb import report_token
from tests.support.hypothesis_settings import SETTINGS, WITHOUT_SHRINKING
from tests.support.servers import Server, on_both_servers
from tests.support.stack import TENANT, FakeCourier, Stack, order

T = TypeVar("T")

EXAMPLES, LONG_EXAMPLES, STEPS = 5, 300, 30
MINUTE = timedelta(minutes=1)
CHANNELS = ("vk", "sms")
ENDS = [None, Status.SENT, Status.FAILED, Status.UNKNOWN, Status.SENDING]
OVER = {DeliveryState.FINISHED, DeliveryState.CANCELLED, DeliveryState.EXPIRED}

contacts = st.lists(st.sampled_from(CHANNELS), unique=True)
contact_lists = st.lists(contacts, min_size=1, max_size=4)
some_minutes = st.integers(1, 3)


class Machine(RuleBasedStateMachine):
    """Each example has its own server."""

    server: Server

    def __init__(self) -> None:
        super().__init__()
        self.server.empty()
        self.runner = asyncio.Runner()
        self.stack = self.run(Stack.open(self.server))
        self.began, self.time = time.monotonic(), 0
        self.base = self.wait(self.stack.claim(limit=0)).now
        self.deliveries: list[Delivery] = []
        self.claims: list[ClaimedParcel] = []

    def wait(self, doing: Coroutine[Any, Any, T]) -> T:
        """Run it. The clock of the scripts stands still: on a slow machine it would pass the minutes of the model."""
        passed = time.monotonic() - self.began
        self.stack.store.clock_offset_ms = self.time * 60_000 - int(passed * 1000)
        return self.run(doing)

    def run(self, doing: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(limits.bounded(doing))

    def at(self, time: int) -> Any:
        return from_ms(self.base + time * 60_000 + 30_000)

    def pick(self, data: st.DataObject) -> Delivery:
        return data.draw(st.sampled_from(self.deliveries))

    def state(self, delivery: Delivery) -> DeliveryState:
        return self.wait(self.stack.history(delivery.key)).state

    @rule(
        people=contact_lists,
        due=st.one_of(st.none(), some_minutes),
        lane=st.sampled_from([None, "x"]),
        life=st.integers(2, 6),
    )
    def enqueue(self, people: list[list[str]], due: int | None, lane: str | None, life: int) -> None:
        recipients = [Recipient(str(n), contacts={c: [f"{c}{n}"] for c in found}) for n, found in enumerate(people)]
        at = self.at(self.time + due) if due else None
        expires = self.at(self.time + (due or 0) + life)
        wanted = order(*recipients, channels=CHANNELS, deliver_at=at, expires_at=expires, lane=lane)
        accepted = self.wait(self.stack.deliveries.enqueue(wanted))
        self.deliveries.append(Delivery(accepted.key, people, self.time + due if due else None))

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data(), due=st.integers(0, 3))
    def reschedule(self, data: st.DataObject, due: int) -> None:
        delivery = self.pick(data)
        if self.state(delivery) is DeliveryState.SCHEDULED:
            history = self.wait(self.stack.history(delivery.key))
            if history.expires_at and self.at(self.time + due) < history.expires_at:
                self.wait(self.stack.deliveries.reschedule(delivery.key, TENANT, self.at(self.time + due)))

    @rule(channel=st.sampled_from(CHANNELS), limit=st.integers(1, 3), lease=some_minutes)
    def claim_parcels(self, channel: str, limit: int, lease: int) -> None:
        for task in self.wait(self.stack.take(channel, limit, lease=lease * MINUTE + MINUTE / 2)):
            parcel = Parcel.of(task)
            delivery = next(one for one in self.deliveries if one.key == parcel.history_key)
            assert not delivery.cancelled
            still = [entry for entry in parcel.entries if delivery.is_open(str(entry.id), channel, parcel.number)]
            assert task.left == len(still)
            assert not {str(entry.id) for entry in still} & delivery.stopped, "cancelled, and handed out again"
            self.claims.append(ClaimedParcel(task, delivery, channel, self.time + lease, still))

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), settles=st.booleans())
    def write_outcomes(self, data: st.DataObject, settles: bool) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        ends = data.draw(st.lists(st.sampled_from(ENDS), min_size=len(claim.entries), max_size=len(claim.entries)))
        outcomes = [(entry, end) for entry, end in zip(claim.entries, ends, strict=True) if end]
        items = [entry.item(end, attempts=1) for entry, end in outcomes]
        for entry, end in outcomes:
            claim.delivery.write(str(entry.id), claim.channel, end)
        if not settles:
            extension = self.wait(self.stack.queue.extend(claim.task, MINUTE + MINUTE / 2, items))
            assert (extension.lease_valid, extension.cancelled) == (True, claim.delivery.cancelled)
            assert set(extension.skip) == claim.skip
            claim.lease = self.time + 1
            return
        result = self.wait(self.stack.queue.settle(claim.task, outcomes=items))
        self.end(claim)
        claim.delivery.lost -= claim.names()  # a settle names the entries that may have been sent; here there are none
        left = any(claim.delivery.written.get((str(e.id), claim.channel), Status.QUEUED) in OPEN for e in claim.entries)
        wanted = "done" if not left else "cancelled" if claim.delivery.cancelled else "ready"
        assert result == wanted

    def end(self, claim: ClaimedParcel) -> None:
        """The claim has ended; entries cancelled during it are closed."""
        self.claims.remove(claim)
        for name in claim.open_names():
            if name[0] in claim.skip:
                claim.delivery.stop(*name, Status.CANCELLED)

    def under_way(self, delivery: Delivery) -> set[tuple[str, str]]:
        """Entries that a worker has; a cancellation does not end them."""
        return {name for claim in self.claims if claim.delivery is delivery for name in claim.names()}

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        state = self.wait(self.stack.queue.release(claim.task))
        self.end(claim)
        if claim.delivery.cancelled:
            claim.delivery.end_lost(claim.open_names())
        assert state in {"ready", "cancelled"}

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data(), status=st.sampled_from([Status.SENT, Status.DELIVERED, Status.READ, Status.FAILED]))
    def report(self, data: st.DataObject, status: Status) -> None:
        delivery = self.pick(data)
        if self.state(delivery) is DeliveryState.SCHEDULED:
            return
        entries = [
            (str(number), channel, [n for n, found in enumerate(delivery.people) if channel in found].index(number))
            for number, found in enumerate(delivery.people)
            for channel in found
        ]
        if not entries:
            return
        recipient, channel, index = data.draw(st.sampled_from(entries))
        before = delivery.written.get((recipient, channel), Status.QUEUED)
        token = self.wait(report_token(self.stack, delivery.key, channel, index))
        changed = self.wait(self.stack.deliveries.record_report(token, status, ""))
        assert changed == supersedes(status, before)
        delivery.write(recipient, channel, status)

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        delivery = self.pick(data)
        before = self.state(delivery)
        reply = self.wait(self.stack.store.run("cancel", 0, delivery.key.suffix, TENANT, 1, "[]"))
        assert (reply[0] == "over") == (before in OVER)
        if reply[0] == "cancelled":
            delivery.cancelled = True
            delivery.end_lost(delivery.lost - self.under_way(delivery))

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data())
    def cancel_some(self, data: st.DataObject) -> None:
        """Calls the script, because `Deliveries.cancel` would wait for the workers, which this machine simulates."""
        delivery = self.pick(data)
        chosen = set(data.draw(st.lists(st.sampled_from([str(n) for n in range(len(delivery.people))]), min_size=1)))
        fields = self.wait(HistoryReader(self.stack.store).fields(delivery.key, TENANT))
        reading = self.stack.deliveries._canceller._entries(delivery.key, fields, lambda _, one: str(one.id) in chosen)
        entries = self.wait(reading)
        latest = {(str(channel), str(item[0])): int(str(parcel)) for channel, parcel, item in entries}  # type: ignore[index]
        alive = {name for name, parcel in latest.items() if self.is_open(delivery, name[0], parcel)}
        reply = self.wait(self.stack.store.run("cancel", 0, delivery.key.suffix, TENANT, 0, compact_json(entries)))
        if reply[0] == "cancelled":
            for channel, recipient in alive:
                self.stop_entry(delivery, channel, latest[channel, recipient], recipient)

    def is_open(self, delivery: Delivery, channel: str, parcel: int) -> bool:
        """Whether the parcel is not yet made or still there."""
        task = f"queue:{{0}}:task:{delivery.key.ns}.{delivery.key.sender}.{channel}.{parcel}"
        return self.state(delivery) is DeliveryState.SCHEDULED or bool(
            self.wait(self.stack.store.command("EXISTS", task))
        )

    def stop_entry(self, delivery: Delivery, channel: str, parcel: int, recipient: str) -> None:
        """A final outcome stays, and the courier is not notified: it does not attempt this entry."""
        if delivery.written.get((recipient, channel), Status.QUEUED) not in OPEN:
            return
        for claim in self.claims:
            if (
                claim.delivery is delivery
                and claim.channel == channel
                and claim.task.id.endswith(f".{channel}.{parcel}")
            ):
                claim.skip.add(recipient)
                return
        delivery.stop(recipient, channel, Status.CANCELLED)

    @precondition(lambda self: self.deliveries)
    @rule(data=st.data(), status=st.sampled_from([Status.FAILED, Status.UNKNOWN]))
    def retry(self, data: st.DataObject, status: Status) -> None:
        delivery = self.pick(data)
        if delivery.cancelled or self.state(delivery) in (DeliveryState.SCHEDULED, DeliveryState.CANCELLED):
            return
        chosen = [name for name, known in delivery.written.items() if known is status]
        made = {plan.channel: len(plan.parcels) for plan in self.wait(self.plan(delivery))}
        assert self.wait(self.stack.deliveries.retry(delivery.key, TENANT, [status])) == len(chosen)
        for name in chosen:
            delivery.written[name], delivery.since[name] = Status.QUEUED, made[name[1]]
        delivery.lost -= set(chosen)
        for claim in self.claims:
            if claim.delivery is delivery:
                claim.lose({recipient for recipient, channel in chosen if channel == claim.channel})

    async def plan(self, delivery: Delivery) -> list[ChannelPlan]:
        fields = await HistoryReader(self.stack.store).fields(delivery.key, TENANT)
        return load_plan(fields["plan"] or "")

    @rule(minutes=some_minutes)
    def time_passes(self, minutes: int) -> None:
        self.time += minutes
        self.wait(self.stack.tick())
        for claim in [claim for claim in self.claims if claim.lease < self.time]:
            claim.delivery.lost |= claim.open_names()
            self.end(claim)
            if claim.delivery.cancelled:
                claim.delivery.end_lost(claim.open_names())

    @invariant()
    def the_audit_is_clean(self) -> None:
        self.wait(self.stack.audit())

    @invariant()
    def the_histories_have_the_written_outcomes(self) -> None:
        for delivery in self.deliveries:
            history = self.wait(self.stack.history(delivery.key))
            for record in history.recipients:
                for channel, outcome in record.outcomes.items():
                    self.compare(delivery, str(record.id), channel, outcome.status, history)

    def compare(self, delivery: Delivery, recipient: str, channel: str, actual: Status, history: History) -> None:
        written = delivery.written.get((recipient, channel), Status.QUEUED)
        if written is Status.QUEUED and (recipient, channel) in delivery.lost and actual is not written:
            delivery.write(recipient, channel, Status.UNKNOWN)  # its parcel expired
            assert actual is Status.UNKNOWN
        elif channel not in delivery.people[int(recipient)]:
            assert actual is Status.NO_CONTACT
        elif (history.state not in OVER and not delivery.cancelled) or (recipient, channel) in self.under_way(delivery):
            assert actual is written
        elif written is Status.SENDING:
            assert actual is Status.UNKNOWN or (actual is written and history.finished_at is None)
        elif written is Status.QUEUED:
            assert actual in (Status.CANCELLED, Status.EXPIRED)
        else:
            assert actual is written

    def teardown(self) -> None:
        """Nothing is lost: what was not cancelled and has not expired is delivered, and every history ends."""
        try:
            self.run(self.deliver_all())
            self.run(self.stack.end_everything())
        finally:
            self.run(self.stack.close())
            limits.close(self.runner)

    async def deliver_all(self) -> None:
        self.stack.advance_clock(5 * MINUTE)
        await self.stack.tick()
        for channel in CHANNELS:
            await self.stack.courier(FakeCourier(channel, remembers=timedelta(0)))
        for delivery in self.deliveries:
            await self.stack.finished(delivery.key)


@on_both_servers
@pytest.mark.timeout(limits.MACHINE)
def test_deliveries_behave_as_the_model(server: Server, request: pytest.FixtureRequest, long_form: bool) -> None:
    machine = type("Machine", (Machine,), {"server": server})
    examples = request.config.getoption("--examples") or (LONG_EXAMPLES if long_form else EXAMPLES)
    run_state_machine_as_test(
        machine,
        settings=settings(
            SETTINGS if long_form else WITHOUT_SHRINKING, max_examples=examples, stateful_step_count=STEPS
        ),
    )
