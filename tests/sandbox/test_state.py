"""SandboxState: the bounded inbox, rules that count down, magic recipients, counters."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.faults import FAULTS
from sandbox.inbox import KEPT_ADDRESSES, KEPT_MESSAGES, Inbox, Written
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import Fault, ReceivedMessage, Rule, SandboxState


def fill(state: SandboxState, *recipients: tuple[str, str]) -> None:
    for number, (channel, address) in enumerate(recipients, 1):
        state.receive(channel, address, f"text {number}", reference=f"r{number}", random_id=number)


def test_messages_are_numbered_over_all_channels(state: SandboxState) -> None:
    fill(state, ("vk", "1"), ("sms", "+7"), ("vk", "1"), ("telegram", "1"))
    assert [one.number for one in state.inbox()] == [1, 2, 3, 4]
    assert [one.number for one in state.inbox("vk", "1")] == [1, 3]
    assert [one.number for one in state.inbox("vk")] == [1, 3]
    assert [one.number for one in state.inbox(address="1")] == [1, 3, 4]
    assert state.inbox("vk", "2") == []
    first = state.inbox()[0]
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
    capacity: int,
    after: int,
    limit: int | None,
    filters: tuple[str | None, str | None],
    cleared_at: int,
) -> None:
    inbox = Inbox(capacity)
    model: list[ReceivedMessage] = []
    for number, (channel, address) in enumerate(sent, 1):
        one = ReceivedMessage(number, channel, address, "", "", None, 0)
        inbox.append(one)
        model = [*model, one][-capacity:]
        if number == cleared_at:
            inbox.clear()
            model = []
    expected = [one for one in model if one.number > after]
    expected = [one for one in expected if filters[0] in (None, one.channel) and filters[1] in (None, one.address)]
    assert inbox.read(*filters, after, limit) == expected[:limit]
    assert len(inbox) == len(model)
    assert inbox.recipient_counts() == {
        channel: len({one.address for one in model if one.channel == channel})
        for channel in {one.channel for one in model}
    }
    assert inbox.newest == len(sent)


async def test_a_task_waits_for_the_next_message(state: SandboxState) -> None:
    waiting = [asyncio.ensure_future(state.wait_for_message()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(one.done() for one in waiting)
    state.receive("vk", "1", "x", reference="1")
    async with asyncio.timeout(20):
        await asyncio.gather(*waiting)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(state.wait_for_message(), 0)


def test_what_people_wrote_is_bounded_by_address_and_by_message() -> None:
    written = Written()
    for number in range(KEPT_ADDRESSES + 1):
        written.append("vk", str(number), "x", 0)
    assert (written.read("vk", "0"), len(written.read("vk", "1"))) == ([], 1)
    for number in range(KEPT_MESSAGES + 1):
        written.append("vk", "1", str(number), 0)
    assert [one.text for one in written.read("vk", "1")] == [str(1 + number) for number in range(KEPT_MESSAGES)]


def test_a_message_is_read_if_its_recipient_has_read_since(state: SandboxState) -> None:
    first = state.receive("vk", "1", "x", reference="1")
    state.mark_read("vk", "1")
    state.mark_read("vk", "nobody")
    second, other = state.receive("vk", "1", "y", reference="2"), state.receive("vk", "2", "z", reference="3")
    assert [state.messages.is_read(one) for one in (first, second, other)] == [True, False, False]
    assert state.messages.newest_of("vk", "1", 1) == [second]
    assert state.messages.newest_of("vk", "1", 5) == [first, second]
    state.messages.clear()
    assert not state.messages.is_read(first)


def test_a_rule_counts_down_and_the_oldest_applies_first(state: SandboxState) -> None:
    state.add_rule(Rule("vk", Fault("error", 9), "5", times=2))
    state.add_rule(Rule("vk", Fault("too_fast")))
    names = [(fault and fault.name) for fault in (state.fault("vk", "5", "messages.send") for _ in range(4))]
    assert names == ["error", "error", "too_fast", "too_fast"]
    assert [rule.times for rule in state.rules().values()] == [None]
    state.clear_rules()
    assert state.fault("vk", "5", "messages.send") is None


def test_a_listed_rule_shows_the_remaining_times(state: SandboxState) -> None:
    number = state.add_rule(Rule("sms", Fault("busy"), times=3))
    state.fault("sms", "+7", "sendsms")
    assert state.rules()[number].times == 2


@pytest.mark.parametrize(
    ("rule", "applies"),
    [
        (Rule("vk", Fault("x")), True),
        (Rule("vk", Fault("x"), "5", "send"), True),
        (Rule("vk", Fault("x"), "6"), False),
        (Rule("vk", Fault("x"), method="other"), False),
        (Rule("sms", Fault("x")), False),
    ],
)
def test_a_rule_applies_to_matching_calls(state: SandboxState, rule: Rule, applies: bool) -> None:
    state.add_rule(rule)
    assert (state.fault("vk", "5", "send") is not None) == applies


def test_a_fault_that_the_caller_cannot_inject_does_not_count_down(state: SandboxState) -> None:
    state.add_rule(Rule("vk", Fault("error", 9), times=1))
    assert state.fault("vk", "5", "messages.send", only={"too_fast"}) is None
    assert state.fault("vk", "900001", "messages.send", only={"too_fast"}) is None
    assert state.fault("vk", "5", "messages.send", only={"error"}) == Fault("error", 9)
    assert state.fault("vk", "900001", "messages.send", only={"error"}) == Fault("error", 901)


@pytest.mark.parametrize("channel", FAULTS)
def test_there_is_a_magic_recipient_for_every_fault(channel: str) -> None:
    possible = {name for name, kind in FAULTS[channel].items() if not kind.is_early}
    assert {fault.name for fault in MAGIC_RECIPIENTS[channel].values()} == possible
    for fault in MAGIC_RECIPIENTS[channel].values():
        assert (fault.value is not None) == (FAULTS[channel][fault.name].value is not None)


def test_magic_addresses_do_not_change() -> None:
    assert MAGIC_RECIPIENTS["telegram"]["900001"] == Fault("flood_wait", 2)
    assert MAGIC_RECIPIENTS["telegram"]["900022"] == Fault("auth_key_duplicated")
    assert MAGIC_RECIPIENTS["vk"]["900001"] == Fault("error", 901)
    assert MAGIC_RECIPIENTS["vk"]["900045"] == Fault("disconnect_after")
    assert MAGIC_RECIPIENTS["sms"]["+70000000001"] == Fault("no_report")
    assert MAGIC_RECIPIENTS["sms"]["+70000000016"] == Fault("queued")
    assert MAGIC_RECIPIENTS["email"]["stored-then-cut@sandbox.example"] == Fault("stored_then_cut")


def test_counters(state: SandboxState) -> None:
    state.count("vk", "execute")
    state.count("vk", "execute")
    state.count("sms", "parts", 3)
    assert state.counters() == {"sms": {"parts": 3}, "vk": {"execute": 2}}
    assert state.counter("vk", "nothing") == 0
