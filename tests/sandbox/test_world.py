"""The world: inboxes that stay bounded, rules that count down, magic recipients, counters."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.faults import FAULTS
from sandbox.inbox import Inbox
from sandbox.magic_recipients import MAGIC
from sandbox.state import Fault, Received, Rule, World

pytestmark = pytest.mark.row("D-43")


def fill(world: World, *people: tuple[str, str]) -> None:
    for number, (channel, address) in enumerate(people, 1):
        world.receive(channel, address, f"text {number}", reference=f"r{number}", random_id=number)


def test_messages_are_numbered_over_all_channels(world: World) -> None:
    fill(world, ("vk", "1"), ("sms", "+7"), ("vk", "1"), ("telegram", "1"))
    assert [one.number for one in world.inbox()] == [1, 2, 3, 4]
    assert [one.number for one in world.inbox("vk", "1")] == [1, 3]
    assert [one.number for one in world.inbox("vk")] == [1, 3]
    assert [one.number for one in world.inbox(address="1")] == [1, 3, 4]
    assert world.inbox("vk", "2") == []
    first = world.inbox()[0]
    assert (first.text, first.reference, first.random_id, first.at > 0) == ("text 1", "r1", 1, True)


message = st.tuples(st.sampled_from(["vk", "sms"]), st.sampled_from("abc"))
person = st.none() | st.sampled_from("abc")


@given(
    st.lists(message, max_size=30),
    st.integers(1, 10),
    st.integers(0, 30),
    st.none() | st.integers(0, 9),
    st.tuples(st.sampled_from([None, "vk", "sms"]), person),
    st.integers(0, 30),
)
def test_the_inbox_is_a_filter_over_the_newest_messages(
    sent: list[tuple[str, str]],
    kept: int,
    after: int,
    limit: int | None,
    wanted: tuple[str | None, str | None],
    cleared_at: int,
) -> None:
    inbox = Inbox(kept)
    model: list[Received] = []
    for number, (channel, address) in enumerate(sent, 1):
        one = Received(number, channel, address, "", "", None, 0)
        inbox.append(one)
        model = [*model, one][-kept:]
        if number == cleared_at:
            inbox.clear()
            model = []
    asked = [one for one in model if one.number > after]
    asked = [one for one in asked if wanted[0] in (None, one.channel) and wanted[1] in (None, one.address)]
    assert inbox.read(*wanted, after, limit) == asked[:limit]
    assert len(inbox) == len(model)
    assert inbox.people() == {
        channel: len({one.address for one in model if one.channel == channel})
        for channel in {one.channel for one in model}
    }
    assert inbox.newest == len(sent)


async def test_news_come_with_the_next_message(world: World) -> None:
    waiting = [asyncio.ensure_future(world.news()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(one.done() for one in waiting)
    world.receive("vk", "1", "x", reference="1")
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(world.news(), 0)


def test_a_rule_counts_down_and_the_oldest_strikes_first(world: World) -> None:
    world.add_rule(Rule("vk", Fault("error", 9), "5", times=2))
    world.add_rule(Rule("vk", Fault("too_fast")))
    names = [(fault and fault.name) for fault in (world.fault("vk", "5", "messages.send") for _ in range(4))]
    assert names == ["error", "error", "too_fast", "too_fast"]
    assert [rule.times for rule in world.rules().values()] == [None]
    world.clear_rules()
    assert world.fault("vk", "5", "messages.send") is None


def test_a_listed_rule_shows_what_is_left(world: World) -> None:
    number = world.add_rule(Rule("sms", Fault("busy"), times=3))
    world.fault("sms", "+7", "sendsms")
    assert world.rules()[number].times == 2


@pytest.mark.parametrize(
    ("rule", "strikes"),
    [
        (Rule("vk", Fault("x")), True),
        (Rule("vk", Fault("x"), "5", "send"), True),
        (Rule("vk", Fault("x"), "6"), False),
        (Rule("vk", Fault("x"), method="other"), False),
        (Rule("sms", Fault("x")), False),
    ],
)
def test_a_rule_strikes_what_it_names(world: World, rule: Rule, strikes: bool) -> None:
    world.add_rule(rule)
    assert (world.fault("vk", "5", "send") is not None) == strikes


def test_who_cannot_play_a_fault_does_not_count_it_down(world: World) -> None:
    world.add_rule(Rule("vk", Fault("error", 9), times=1))
    assert world.fault("vk", "5", "messages.send", only={"too_fast"}) is None
    assert world.fault("vk", "900001", "messages.send", only={"too_fast"}) is None
    assert world.fault("vk", "5", "messages.send", only={"error"}) == Fault("error", 9)
    assert world.fault("vk", "900001", "messages.send", only={"error"}) == Fault("error", 901)


@pytest.mark.parametrize("channel", FAULTS)
def test_there_is_a_magic_recipient_for_every_fault(channel: str) -> None:
    assert {fault.name for fault in MAGIC[channel].values()} == set(FAULTS[channel])
    for fault in MAGIC[channel].values():
        assert (fault.value is not None) == (FAULTS[channel][fault.name].value is not None)


def test_magic_addresses_are_where_they_always_were() -> None:
    assert MAGIC["telegram"]["900001"] == Fault("flood_wait", 2)
    assert MAGIC["telegram"]["900022"] == Fault("auth_key_duplicated")
    assert MAGIC["vk"]["900001"] == Fault("error", 901)
    assert MAGIC["vk"]["900045"] == Fault("disconnect_after")
    assert MAGIC["sms"]["+70000000001"] == Fault("no_report")
    assert MAGIC["sms"]["+70000000016"] == Fault("queued")


def test_counters(world: World) -> None:
    world.count("vk", "execute")
    world.count("vk", "execute")
    world.count("sms", "parts", 3)
    assert world.counters() == {"sms": {"parts": 3}, "vk": {"execute": 2}}
    assert world.counted("vk", "nothing") == 0
