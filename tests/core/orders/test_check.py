"""The rules of an order without the store: one check for every way in."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from core.errors import Invalid, InvalidMany
from core.model.content import Button, Content, ParseMode
from core.model.delivery import Strategy
from core.model.history_key import HistoryKey
from core.orders import Addressee
from core.orders.check import MOST_FAULTS, check
from tests.core.orders.conftest import NOON, Office, order
from tests.support.stack import person

HOUR = timedelta(hours=1)
FIELDS: list[tuple[dict[str, Any], Sequence[tuple[str, str]]]] = [
    ({}, []),
    ({"kind": "a\nb", "origin": "\t", "lane": "l\x7f"}, [("NOT_PRINTABLE", one) for one in ("kind", "origin", "lane")]),
    ({"tags": ("a", "b\n")}, [("NOT_PRINTABLE", "tags.1")]),
    ({"channels": ("echo", "pigeon")}, [("UNKNOWN_CHANNEL", "channels.1")]),
    ({"wait": HOUR}, [("WAIT_WITHOUT_FIRST", "wait")]),
    ({"wait": timedelta(0), "strategy": Strategy.FIRST}, [("WAIT_OUT_OF_RANGE", "wait")]),
    ({"wait": timedelta(days=31), "strategy": Strategy.FIRST}, [("WAIT_OUT_OF_RANGE", "wait")]),
    ({"expires_at": NOON}, [("EXPIRES_BEFORE_DUE", "expires_at")]),
    ({"deliver_at": NOON + 2 * HOUR, "expires_at": NOON + HOUR}, [("EXPIRES_BEFORE_DUE", "expires_at")]),
    ({"history_key": HistoryKey.new("other", 1, 0)}, [("HISTORY_KEY_OF_ANOTHER_SENDER", "history_key")]),
    ({"deliver_at": NOON - HOUR}, [("DELIVER_AT_PAST", "deliver_at")]),
    ({"text": " "}, [("TEXT_EMPTY", "text")]),
    ({"text": "<b>", "content": Content(ParseMode.HTML)}, [("TEXT_EMPTY", "text"), ("MARKS_BROKEN", "text")]),
    ({"content": Content(inline=[[Button("a")]])}, [("BUTTON_MALFORMED", "content.inline")]),
]
ADDRESSEES: list[tuple[Addressee, Sequence[tuple[str, str]]]] = [
    (Addressee(7, contacts={"echo": "p7"}), []),
    (Addressee(name="Anna"), [("RECIPIENT_WITHOUT_ID", "recipients.1.id")]),
    (Addressee(7, group="ИВТ-21"), [("RECIPIENT_AMBIGUOUS", "recipients.1")]),
    (Addressee(group="ИВТ-21", name="Anna"), [("RECIPIENT_AMBIGUOUS", "recipients.1")]),
    (Addressee("a\nb"), [("NOT_PRINTABLE", "recipients.1.id")]),
    (Addressee(supergroup="a\nb"), [("NOT_PRINTABLE", "recipients.1.supergroup")]),
    (Addressee(7, contacts={"pigeon": "1"}), [("UNKNOWN_CHANNEL", "recipients.1.contacts.pigeon")]),
    (Addressee(7, contacts={"sms": "123"}), [("ADDRESS_MALFORMED", "recipients.1.contacts.sms")]),
    (Addressee(7, contacts={"sms": ["123"]}), [("ADDRESS_MALFORMED", "recipients.1.contacts.sms.0")]),
    (Addressee(7, values={"Mark": 5, "mark": 4}), [("FIELD_REPEATED", "recipients.1.values.mark")]),
]


def found(faults: Sequence[Invalid]) -> Sequence[tuple[str, str]]:
    return [(one.code, one.path) for one in faults]


@pytest.mark.parametrize(("fields", "expected"), FIELDS)
def test_each_fault_of_a_delivery_has_its_code_and_path(
    fields: dict[str, Any], expected: Sequence[tuple[str, str]]
) -> None:
    assert found(check(order(**fields), ["echo"], NOON)) == expected


@pytest.mark.parametrize(("addressee", "expected"), ADDRESSEES)
def test_each_fault_of_an_addressee_has_its_code_and_path(
    addressee: Addressee, expected: Sequence[tuple[str, str]]
) -> None:
    assert found(check(order(person(1), addressee), ["echo", "sms"], NOON)) == expected


def test_values_need_a_personal_text() -> None:
    given = order(Addressee(7, values={"mark": 5}))
    assert (found(check(given, ["echo"], NOON)), given.is_personal) == ([], True)
    assert found(check(replace(given, personal=False), ["echo"], NOON)) == [("VALUES_NOT_PERSONAL", "personal")]


def test_a_channel_in_which_somebody_has_written_is_known_before_its_courier_starts() -> None:
    assert check(order(person(1, "new"), channels=["new"]), [], NOON) == []
    assert found(check(order(Addressee(1), channels=["new"]), [], NOON)) == [("UNKNOWN_CHANNEL", "channels.0")]


async def test_all_faults_are_refused_at_once_without_a_trace(office: Office) -> None:
    before = office.stack.server.all_keys()
    with pytest.raises(InvalidMany) as refused:
        await office.send(*[Addressee(f"\n{n}") for n in range(30)], kind="\n")
    assert found(refused.value.errors[:2]) == [("NOT_PRINTABLE", "kind"), ("NOT_PRINTABLE", "recipients.0.id")]
    assert len(refused.value.errors) == MOST_FAULTS
    assert office.stack.server.all_keys() == before


async def test_a_repeat_gets_the_first_result_after_its_expiry(office: Office) -> None:
    first = await office.send(expires_at=NOON + HOUR, repeat="key")
    office.now += 2 * HOUR
    assert (await office.send(expires_at=NOON + HOUR, repeat="key")).key == first.key
