"""The code that is posted to `execute`."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from couriers.vk.calls import Call, Key, calls_of, code_of, key_of
from sandbox.vkscript import Value, execute
from tests.couriers.contract import ODD_TEXTS, message

pytestmark = pytest.mark.row("D-21", "D-25")


def run(code: str) -> list[tuple[str, dict[str, Value]]]:
    """The calls that VKScript makes of it."""
    made: list[tuple[str, dict[str, Value]]] = []

    def note(method: str, parameters: Mapping[str, Value]) -> Value:
        made.append((method, dict(parameters)))
        return []

    execute(code, note)
    return made


@given(st.one_of(st.sampled_from(ODD_TEXTS), st.text(min_size=1)))
def test_no_text_can_end_its_literal(text: str) -> None:
    code = code_of([Call(text, 7, (1, 2)), Call("next", 8, (3,))])
    assert code.isascii()
    assert run(code) == [
        ("messages.send", {"peer_ids": [1, 2], "message": text, "random_id": 7}),
        ("messages.send", {"peer_ids": [3], "message": "next", "random_id": 8}),
    ]


def test_the_code_is_one_return_of_literals() -> None:
    wanted = {"peer_ids": [1], "message": "я\u2028", "random_id": 7}
    literal = json.dumps(wanted, ensure_ascii=True, separators=(",", ":"))
    assert code_of([Call("я\u2028", 7, (1,))]) == f"return [API.messages.send({literal})];"


def test_2500_recipients_are_25_calls_of_100() -> None:
    calls = calls_of([Key("hello", 7, peer) for peer in range(1, 2501)])
    assert [len(call.peers) for call in calls] == [100] * 25
    assert len({peer for call in calls for peer in call.peers}) == 2500


def test_who_is_there_twice_is_sent_to_once() -> None:
    assert calls_of([Key("hello", 7, 1), Key("hello", 7, 2), Key("hello", 7, 1)]) == [Call("hello", 7, (1, 2))]


def test_texts_and_deliveries_do_not_mix() -> None:
    keys = [Key("a", 7, 1), Key("b", 7, 1), Key("a", 8, 1)]
    assert calls_of(keys) == [Call("a", 7, (1,)), Call("b", 7, (1,)), Call("a", 8, (1,))]


def test_the_random_id_is_the_deliverys_and_fits() -> None:
    keys = [key_of(message("1", seed=f"delivery {number}", recipient="1")) for number in range(1000)]
    others = [key_of(message("1", seed=f"delivery {number}", recipient="2")) for number in range(1000)]
    assert keys == others
    assert all(key is not None and 0 < key.random_id < 2**31 for key in keys)
    assert len(set(keys)) == 1000


@pytest.mark.parametrize("address", ["", "durov", "id1", "0", "01", "+1", "1.0", " 1", "٣", "1" * 19])
def test_what_is_no_peer_id_has_no_key(address: str) -> None:
    assert key_of(message(address)) is None


@pytest.mark.parametrize("address", ["1", "2000000001", "-1"])
def test_people_chats_and_communities_have_a_key(address: str) -> None:
    key = key_of(message(address))
    assert key is not None
    assert key.peer == int(address)
