"""Quotas: a sliding window per sender, taken in the same step as the delivery is stored."""

import asyncio
import sys
from datetime import timedelta

import pytest
from msgspec.structs import replace

from core.admission.idempotency import Idempotency
from core.admission.quotas import Quotas
from core.errors import Conflict, Invalid, QuotaExceeded
from core.model.delivery import NO_QUOTA, Accepted, Quota, QuotaState, Repeat, Sender
from core.model.history_key import HistoryKey
from core.model.people import User
from core.orders import SendingPolicy
from core.redis.keys import KEYS
from tests.core.orders.conftest import ADMIN, DAY, LATER, SEND_ONLY, TRAINER, Office, order
from tests.core.orders.racing_senders import QUOTA
from tests.support.paths import ROOT
from tests.support.servers import Server, on_both_servers
from tests.support.stack import TENANT, Stack, person
from tests.support.stack import order as stack_order

HOUR = timedelta(hours=1)


async def send(office: Office, repeat: str = "", sender: Sender = TRAINER) -> Accepted:
    return await office.send(sender=sender, repeat=repeat, deliver_at=LATER)


async def refused(office: Office) -> QuotaExceeded:
    """The refusal of the next delivery; asserts that it leaves no trace."""
    before = sorted(office.stack.server.all_keys())
    with pytest.raises(QuotaExceeded) as refusal:
        await send(office, repeat="refused")
    assert sorted(office.stack.server.all_keys()) == before
    return refusal.value


@on_both_servers
async def test_the_window_slides_the_first_delivery_leaves_it_first(office: Office) -> None:
    for used in range(1, 5):
        quota = (await send(office)).quota
        assert quota is not None
        assert (quota.used, quota.limit) == (used, 4)
        office.stack.advance_clock(6 * HOUR if used == 1 else HOUR)
    refusal = await refused(office)  # 9 hours after the first one
    assert (refusal.code, refusal.limit, refusal.period) == ("QUOTA_EXCEEDED", 4, DAY)
    assert str(refusal).startswith("The quota of 4 deliveries in 24 h is used up; the next one is possible in 1")
    assert timedelta(0) <= 15 * HOUR - refusal.retry_after < timedelta(seconds=10)
    state = await office.sending.quota(TENANT, 42)
    assert (state.used, state.limit) == (4, 4)
    assert timedelta(0) <= 15 * HOUR - state.resets_in < timedelta(seconds=10)
    office.stack.advance_clock(15 * HOUR - timedelta(minutes=1))
    await refused(office)
    office.stack.advance_clock(timedelta(minutes=1))
    assert (await office.sending.quota(TENANT, "42")).used == 3
    await send(office)
    assert timedelta(0) <= 6 * HOUR - (await refused(office)).retry_after < timedelta(seconds=10)


def is_about(found: timedelta | None, wanted: timedelta) -> bool:
    """Whether the time is the wanted one, less the seconds that the test takes."""
    return found is not None and timedelta(0) <= wanted - found < timedelta(seconds=30)


async def test_every_send_says_when_the_oldest_one_leaves_the_window(office: Office) -> None:
    for left in (24, 18, 12, 6):
        quota = (await send(office)).quota
        assert quota
        assert is_about(quota.resets_in, left * HOUR)
        assert is_about((await office.sending.quota(TENANT, 42)).resets_in, left * HOUR)
        office.stack.advance_clock(6 * HOUR)
    quota = (await send(office)).quota  # the first one has left
    assert quota
    assert (quota.used, is_about(quota.resets_in, 6 * HOUR)) == (4, True)


async def test_a_quota_that_was_lowered_waits_until_enough_deliveries_have_left(office: Office) -> None:
    for _ in range(4):
        await send(office)
        office.stack.advance_clock(HOUR)
    lowered = office.process(office.stack.store, SendingPolicy({"trainer": Quota(2, DAY)}))
    with pytest.raises(QuotaExceeded) as refusal:
        await lowered.send(order(sender=TRAINER, deliver_at=LATER), ADMIN)
    assert is_about(refusal.value.retry_after, 22 * HOUR)  # the third of four, which was sent two hours ago
    office.stack.advance_clock(22 * HOUR)
    accepted = await lowered.send(order(sender=TRAINER, deliver_at=LATER), ADMIN)
    assert accepted.quota
    assert accepted.quota.used == 2


async def test_sends_outside_the_window_are_not_kept_and_the_last_one_is_until_it_leaves(office: Office) -> None:
    key = KEYS["quota"].at(office.stack.store.shard_of("42"), TENANT, "42")
    for hours in (18, 12, 0):
        await send(office)
        await office.stack.redis.pexpire(key, 1000)
        office.stack.advance_clock(hours * HOUR)
    await send(office)
    assert await office.stack.redis.zcard(key) == 3
    assert is_about(timedelta(milliseconds=await office.stack.redis.pttl(key)), DAY)


async def test_a_hundred_concurrent_sends_of_four_processes_never_exceed_the_quota(
    clean_server: Server, stack: Stack
) -> None:
    command = (sys.executable, "-m", "tests.core.orders.racing_senders", clean_server.url, "25")
    pipe, root = asyncio.subprocess.PIPE, ROOT
    senders = [await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, cwd=root) for _ in range(4)]
    outputs = []
    for sender in senders:
        assert sender.stdin
        assert sender.stdout
        assert await sender.stdout.readline() == b"ready\n"
        outputs.append((sender.stdin, sender.stdout))
    for stdin, _ in outputs:
        stdin.write(b"\n")
    accepted = [int(await stdout.readline()) for _, stdout in outputs]
    assert [await sender.wait() for sender in senders] == [0] * 4
    assert sum(accepted) == QUOTA.limit
    deliveries, _ = await stack.deliveries.list(TENANT)
    assert len(deliveries) == QUOTA.limit


async def test_a_repeat_does_not_count_twice_and_is_answered_although_the_quota_is_used_up(office: Office) -> None:
    first = await send(office, repeat="key")
    for _ in range(3):
        await send(office, repeat="key")
    assert (await office.sending.quota(TENANT, 42)).used == 1
    for _ in range(3):
        await send(office)
    await refused(office)
    again = await send(office, repeat="key")
    assert (again.key, again.repeated) == (first.key, True)


async def test_a_refused_delivery_does_not_count(office: Office) -> None:
    key = (await send(office)).key
    with pytest.raises(Exception, match="already has a delivery"):
        await office.send(sender=TRAINER, history_key=key)
    assert (await office.sending.quota(TENANT, 42)).used == 1


async def test_a_delivery_that_is_cancelled_before_its_time_still_counts(office: Office) -> None:
    await office.stack.deliveries.cancel((await send(office)).key, TENANT)
    assert (await office.sending.quota(TENANT, 42)).used == 1


async def test_each_sender_and_tenant_has_its_own_quota(office: Office) -> None:
    for _ in range(4):
        await send(office)
    await send(office, sender=replace(TRAINER, id=43))
    other = await office.sending.send(order(sender=TRAINER, deliver_at=LATER), replace(ADMIN, tenant="college"))
    assert other.quota
    assert other.quota.used == 1
    await office.stack.deliveries.cancel(other.key, "college")


async def test_a_sender_is_held_to_its_role_in_the_directory(office: Office) -> None:
    await office.directory.users.create(TENANT, User(42, role="trainer"))
    assert await office.sending.quota(TENANT, 42) == QuotaState(0, 4, timedelta(0), DAY)
    for claimed in ("staff", "admin", None, "student"):
        await office.send(caller=SEND_ONLY, sender=Sender(42, role=claimed), deliver_at=LATER)
    with pytest.raises(QuotaExceeded):
        await office.send(caller=SEND_ONLY, sender=Sender("42", role="admin"), deliver_at=LATER)
    await office.send(caller=ADMIN, sender=Sender(42), deliver_at=LATER)


async def test_a_sender_outside_the_directory_is_held_to_the_role_of_the_request(office: Office) -> None:
    for _ in range(4):
        await office.send(caller=SEND_ONLY, sender=TRAINER, deliver_at=LATER)
    with pytest.raises(QuotaExceeded):
        await office.send(caller=SEND_ONLY, sender=TRAINER, deliver_at=LATER)


async def test_the_quota_of_a_sender_outside_the_directory_is_that_of_its_last_delivery(office: Office) -> None:
    assert await office.sending.quota(TENANT, 42) == NO_QUOTA
    assert (await office.sending.quota(TENANT, 42, "staff")).limit == 16
    await send(office, sender=Sender(42, role="staff"))
    state = await office.sending.quota(TENANT, 42)
    assert (state.used, state.limit, state.period) == (1, 16, DAY)
    assert await office.sending.quota(TENANT, 42, "admin") == NO_QUOTA


@pytest.mark.parametrize("sender", [Sender(1), Sender(1, role="student"), Sender(1, role="admin")])
async def test_a_sender_without_a_quota_leaves_no_key_for_it(office: Office, sender: Sender) -> None:
    for _ in range(5):
        assert (await send(office, sender=sender)).quota is None
    assert not [key for key in office.stack.server.all_keys() if key.startswith("quota:")]


async def test_a_shorter_limit_counts_what_was_sent_under_the_longer_one(office: Office) -> None:
    for _ in range(3):
        await send(office)
    strict = office.process(office.stack.store, SendingPolicy({"trainer": Quota(2, DAY)}))
    with pytest.raises(QuotaExceeded):
        await strict.send(order(sender=TRAINER), ADMIN)


class TestSeveralShards:
    """A sender with a quota has all its deliveries in one shard."""

    @pytest.fixture
    async def stack(self, clean_server: Server) -> Stack:
        return await Stack.open(clean_server, shards=4)

    @pytest.fixture(autouse=True)
    async def end(self, stack: Stack) -> object:
        yield
        await stack.end_everything()
        await stack.close()

    async def test_the_quota_holds_over_all_shards(self, office: Office) -> None:
        key = await office.stack.deliveries.reserve(TENANT, 42)
        accepted = [await send(office, repeat=str(number)) for number in range(3)]
        accepted.append(await office.send(sender=TRAINER, history_key=key, deliver_at=LATER))
        assert {one.key.shard for one in accepted} == {office.stack.store.shard_of("42")}
        await refused(office)

    async def test_a_made_up_history_key_does_not_lead_past_the_quota(self, office: Office) -> None:
        shard = (office.stack.store.shard_of("42") + 1) % 4
        with pytest.raises(Invalid) as refusal:
            await office.send(sender=TRAINER, history_key=HistoryKey(shard, "42", 1763712000000000000))
        assert refusal.value.code == "HISTORY_KEY_MALFORMED"

    async def test_lanes_in_other_shards_do_not_lead_past_the_quota(self, office: Office) -> None:
        """What is refused or repeats an earlier request is not counted, although its quota is counted before it."""

        async def send_in_lane(number: int) -> Accepted:
            return await office.send(sender=TRAINER, repeat=f"key {number}", deliver_at=LATER, lane=f"lane {number}")

        accepted = []
        for number in range(4):
            accepted.append(await send_in_lane(number))
            assert (await send_in_lane(number)).key == accepted[-1].key
            with pytest.raises(Conflict):
                await Idempotency(office.stack.store).begin(TENANT, f"key {number}", "another")
        assert [one.key.shard for one in accepted] == [office.stack.store.shard_of(f"lane {n}") for n in range(4)]
        assert len({one.key.shard for one in accepted}) > 1
        assert [one.quota.used for one in accepted if one.quota] == [1, 2, 3, 4]
        with pytest.raises(QuotaExceeded):
            await office.send(sender=TRAINER, deliver_at=LATER, lane="lane 0")
        assert (await send_in_lane(3)).key == accepted[-1].key
        key = await office.stack.deliveries.reserve(TENANT, 42)
        for lane in ("lane 0", "lane 1", "lane 2", "lane 3"):
            if office.stack.store.shard_of(lane) != key.shard:
                with pytest.raises(Invalid, match="reserved for this lane"):
                    await office.send(sender=TRAINER, deliver_at=LATER, lane=lane, history_key=key)

    async def test_a_repeat_meets_the_first_request_wherever_its_key_is_stored(self, office: Office) -> None:
        for number in range(3):
            first = await send(office, repeat=f"key {number}")
            again = await send(office, repeat=f"key {number}")
            assert (again.key, again.repeated) == (first.key, True)
        assert (await office.sending.quota(TENANT, 42)).used == 3

    async def test_a_repeat_of_what_used_the_quota_up_is_answered_although_its_lane_is_elsewhere(
        self, stack: Stack
    ) -> None:
        """As `Sending` enqueues it if two of these requests run at one time."""
        shard_of = stack.store.shard_of
        lane = next(lane for lane in "abcdefgh" if shard_of(lane) != shard_of("42"))
        delivery = stack_order(person(1), sender=TRAINER, quota=Quota(1, DAY), lane=lane, deliver_at=LATER)
        first, again = [await stack.deliveries.enqueue(delivery, Repeat("key", "same")) for _ in range(2)]
        assert (again.key, again.repeated) == (first.key, True)
        wider = replace(delivery, quota=Quota(2, DAY))
        assert (await stack.deliveries.enqueue(wider, Repeat("key", "same"))).key == first.key
        second = await stack.deliveries.enqueue(wider, Repeat("another", "other"))
        assert second.quota
        assert second.quota.used == 2, "the first is counted once"

    async def test_a_repeat_meets_the_first_request_also_if_the_role_has_changed(self, office: Office) -> None:
        for number in range(6):
            first = await send(office, repeat=f"key {number}", sender=Sender(42))
            again = await send(office, repeat=f"key {number}")
            assert again.key == first.key

    async def test_other_operations_refuse_the_key_of_a_delivery_with_a_quota(self, office: Office) -> None:
        for number in range(4):
            await send(office, repeat=f"key {number}")
            with pytest.raises(Conflict):
                await Idempotency(office.stack.store).begin(TENANT, f"key {number}", "another")
        await refused(office)


async def test_a_full_store_still_reads_quotas(office: Office, stack: Stack) -> None:
    await send(office)
    await stack.redis.config_set("maxmemory", 1)
    try:
        assert (await office.sending.quota(TENANT, 42)).used == 1
    finally:
        await stack.redis.config_set("maxmemory", 0)


def test_an_admin_has_no_quota_although_the_settings_name_the_role(stack: Stack) -> None:
    quotas = Quotas(stack.store, {"admin": QUOTA, "staff": QUOTA})
    assert [quotas.of_role(role) for role in ("admin", "staff", "student", None)] == [None, QUOTA, None, None]
