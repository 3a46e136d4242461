"""The code that is posted to `execute`."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from couriers.vk.calls import MessageKey, VkCall, execute_code, group_into_calls, message_key
from sandbox.vkscript import Value, execute
from tests.couriers.contract import UNUSUAL_TEXTS, message


def run(code: str) -> list[tuple[str, dict[str, Value]]]:
    """Run the code in the sandbox's VKScript and return its API calls."""
    made: list[tuple[str, dict[str, Value]]] = []

    def note(method: str, parameters: Mapping[str, Value]) -> Value:
        made.append((method, dict(parameters)))
        return []

    execute(code, note)
    return made


@given(st.one_of(st.sampled_from(UNUSUAL_TEXTS), st.text(min_size=1)))
def test_no_text_can_end_its_literal(text: str) -> None:
    code = execute_code([VkCall(text, 7, (1, 2)), VkCall("next", 8, (3,))])
    assert code.isascii()
    assert run(code) == [
        ("messages.send", {"peer_ids": [1, 2], "message": text, "random_id": 7}),
        ("messages.send", {"peer_ids": [3], "message": "next", "random_id": 8}),
    ]


def test_the_code_is_one_return_of_literals() -> None:
    wanted = {"peer_ids": [1], "message": "я\u2028", "random_id": 7}
    literal = json.dumps(wanted, ensure_ascii=True, separators=(",", ":"))
    assert execute_code([VkCall("я\u2028", 7, (1,))]) == f"return [API.messages.send({literal})];"


def test_2500_recipients_are_25_calls_of_100() -> None:
    calls = group_into_calls([MessageKey("hello", 7, peer) for peer in range(1, 2501)])
    assert [len(call.peers) for call in calls] == [100] * 25
    assert len({peer for call in calls for peer in call.peers}) == 2500


def test_a_repeated_recipient_gets_one_message() -> None:
    assert group_into_calls([MessageKey("hello", 7, 1), MessageKey("hello", 7, 2), MessageKey("hello", 7, 1)]) == [
        VkCall("hello", 7, (1, 2))
    ]


def test_texts_and_deliveries_are_separate_calls() -> None:
    keys = [MessageKey("a", 7, 1), MessageKey("b", 7, 1), MessageKey("a", 8, 1)]
    assert group_into_calls(keys) == [VkCall("a", 7, (1,)), VkCall("b", 7, (1,)), VkCall("a", 8, (1,))]


def test_the_random_id_depends_on_the_delivery_only_and_fits() -> None:
    keys = [message_key(message("1", seed=f"delivery {number}", recipient="1")) for number in range(1000)]
    others = [message_key(message("1", seed=f"delivery {number}", recipient="2")) for number in range(1000)]
    assert keys == others
    assert all(key is not None and 0 < key.random_id < 2**31 for key in keys)
    assert len(set(keys)) == 1000


@pytest.mark.parametrize("address", ["", "durov", "id1", "0", "01", "+1", "1.0", " 1", "٣", "1" * 19])
def test_an_invalid_peer_id_has_no_key(address: str) -> None:
    assert message_key(message(address)) is None


@pytest.mark.parametrize("address", ["1", "2000000001", "-1"])
def test_users_chats_and_communities_have_a_key(address: str) -> None:
    key = message_key(message(address))
    assert key is not None
    assert key.peer == int(address)
