"""The SMS sandbox: messages, parts, delivery reports."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.sms.server import SENDER
from sandbox.sms.submission import BASIC, EXTENSION, GSM, UCS2, as_gsm, parts
from tests.sandbox.conftest import CallbackServer, Sms
from tests.support.waiting import until

ACCEPTED = (202, "0: Accepted for delivery")


def report_parameters(callbacks: CallbackServer, mask: int = 31) -> dict[str, str]:
    return {"dlr_mask": str(mask), "dlr_url": f"{callbacks.url}/report?secret=s3cret&state=%d&id=%F&text=%A"}


async def reported_states(sms: Sms, callbacks: CallbackServer, count: int) -> list[int]:
    """Wait for `count` delivery reports and return their states."""
    await until(lambda: sms.state.counter("sms", "reports") == count)
    return callbacks.states()


# messages


async def test_a_message_is_received(sms: Sms) -> None:
    assert await sms.send("+79990000001", "hello") == ACCEPTED
    assert [(one.address, one.text, one.random_id) for one in sms.state.inbox("sms")] == [
        ("+79990000001", "hello", None)
    ]


async def test_several_numbers_receive_one_message_each(sms: Sms) -> None:
    assert await sms.send("+79990000001 79990000002 nonsense") == ACCEPTED
    assert [one.address for one in sms.state.inbox("sms")] == ["+79990000001", "+79990000002"]
    assert len({one.reference for one in sms.state.inbox("sms")}) == 2
    assert sms.state.counter("sms", "messages") == 2


@pytest.mark.parametrize(
    "user", [{"username": "ada"}, {"password": "sandbox"}, {"username": "x", "password": "sandbox"}, {}]
)
async def test_wrong_credentials_are_refused(sms: Sms, user: dict[str, str]) -> None:
    assert await sms.request(to="+7", text="x", **{"from": "Ada"}, **user) == (403, "Authorization failed for sendsms")
    assert sms.state.inbox() == []


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        ({"to": ""}, "Empty receiver number not allowed, rejected"),
        ({"to": "abc"}, "Number(s) has/have been denied by white- and/or black-lists."),
        ({"coding": "5"}, "Coding field misformed, rejected"),
        ({"coding": "1"}, "Coding field misformed, rejected"),
        ({"dlr_mask": "67"}, "DLR-Mask field misformed, rejected"),
        ({"validity": "-2"}, "Validity field misformed, rejected"),
        ({"charset": "nosuch"}, "Charset or body misformed, rejected"),
    ],
)
async def test_refusals_have_kannels_text(sms: Sms, more: dict[str, str], refusal: str) -> None:
    known = {"username": "ada", "password": "sandbox", "from": "Ada", "to": "+79990000001", "text": "hello"}
    assert await sms.request(**{**known, **{name.replace("_", "-"): value for name, value in more.items()}}) == (
        400,
        refusal,
    )
    assert sms.state.inbox() == []


@pytest.mark.parametrize(
    ("text", "more", "received"),
    [
        ("Привет, {мир} 😀", {"coding": "2"}, "Привет, {мир} 😀"),
        ("Привет €", {"coding": "0"}, "?????? €"),
        ("Привет €", {}, "?????? €"),
        ("a\nb\t", {"coding": "0"}, "a\nb?"),
    ],
)
async def test_the_coding_determines_the_received_text(
    sms: Sms, text: str, more: dict[str, str], received: str
) -> None:
    await sms.send(text=text, **more)
    assert sms.texts("+79990000001") == [received]


async def test_bytes_invalid_in_the_charset_are_refused(sms: Sms) -> None:
    query = "username=ada&password=sandbox&from=Ada&to=%2B7999&text=%FF&charset=utf-8&coding=2"
    async with sms.session.get(f"{sms.server.url}?{query}") as answer:
        assert (answer.status, await answer.text()) == (400, "Charset or body misformed, rejected")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_gsm_text_keeps_each_character_of_the_alphabet(text: str) -> None:
    converted = as_gsm(text)
    assert all(
        one == other or (other == "?" and one not in BASIC | EXTENSION)
        for one, other in zip(text, converted, strict=True)
    )


# parts


@pytest.mark.parametrize(
    ("text", "coding", "expected"),
    [
        ("", GSM, 1),
        ("a" * 160, GSM, 1),
        ("a" * 161, GSM, 2),
        ("a" * 306, GSM, 2),
        ("a" * 307, GSM, 3),
        ("€" * 80, GSM, 1),
        ("€" * 81, GSM, 2),
        ("a" * 152 + "€" + "a" * 152, GSM, 3),
        ("a" * 153 + "€" + "a" * 151, GSM, 2),
        ("я" * 70, UCS2, 1),
        ("я" * 71, UCS2, 2),
        ("я" * 134, UCS2, 2),
        ("я" * 135, UCS2, 3),
        ("😀" * 35, UCS2, 1),
        ("я" * 66 + "😀" + "я" * 66, UCS2, 3),
        ("я" * 67 + "😀" + "я" * 65, UCS2, 2),
    ],
)
def test_parts_do_not_cut_pairs(text: str, coding: int, expected: int) -> None:
    assert parts(text, coding) == expected


@given(st.text(st.sampled_from("a€[я"), max_size=500), st.sampled_from([GSM, UCS2]))
@example("€" * 154, GSM)
def test_the_part_count_equals_that_of_a_greedy_cut(text: str, coding: int) -> None:
    """The model cuts character by character, with the lengths of the standard."""
    alone, joined = (160, 153) if coding == GSM else (70, 67)
    sizes = [2 if coding == GSM and letter in "€[" else 1 for letter in text]
    part_sizes = [0]
    for size in sizes:
        if part_sizes[-1] + size > joined:
            part_sizes.append(0)
        part_sizes[-1] += size
    assert parts(text, coding) == (1 if sum(sizes) <= alone else len(part_sizes))


async def test_parts_are_counted_for_every_number(sms: Sms) -> None:
    await sms.send("+79990000001 +79990000002", "я" * 71, coding="2")
    assert sms.state.counter("sms", "parts") == 4


# delivery reports


@pytest.mark.parametrize(("mask", "states"), [(31, [8, 1]), (1, [1]), (8, [8]), (9, [8, 1])])
async def test_the_mask_selects_the_delivery_reports(
    sms: Sms, callbacks: CallbackServer, mask: int, states: list[int]
) -> None:
    await sms.send(**report_parameters(callbacks, mask))
    assert await reported_states(sms, callbacks, len(states)) == states


@pytest.mark.parametrize("mask", [0, 2, 16])
async def test_states_outside_the_mask_are_not_reported(sms: Sms, callbacks: CallbackServer, mask: int) -> None:
    await sms.send(**report_parameters(callbacks, mask))
    await sms.send("+79990000002", **report_parameters(callbacks, 1))
    assert await reported_states(sms, callbacks, 1) == [1]


async def test_a_delivery_report_has_the_reference_of_the_inbox(sms: Sms, callbacks: CallbackServer) -> None:
    await sms.send(**report_parameters(callbacks, 1))
    await reported_states(sms, callbacks, 1)
    call, received = callbacks.calls[0], sms.state.inbox("sms")[0]
    assert (call["id"], call["secret"]) == (received.reference, "s3cret")
    assert "stat:DELIVRD err:000" in call["text"]


async def test_all_escapes_are_replaced(sms: Sms, callbacks: CallbackServer) -> None:
    url = f"{callbacks.url}/r?state=%d&to=%p&from=%P&at=%t&unix=%T&smsc=%i&user=%n&strange=%y&id=%I&percent=%%25"
    await sms.send("+79990000001", dlr_mask="1", dlr_url=url)
    await reported_states(sms, callbacks, 1)
    call = callbacks.calls[0]
    assert (call["to"], call["from"], call["smsc"], call["user"]) == ("+79990000001", "Ada", "sandbox", "ada")
    assert (call["strange"], call["percent"]) == ("%y", "%")
    assert int(call["unix"]) > 0
    assert call["at"][4] == "-"


async def test_a_lost_delivery_report_is_counted_and_ignored(sms: Sms) -> None:
    await sms.send(dlr_mask="1", dlr_url="http://127.0.0.1:9/?state=%d")
    await until(lambda: sms.state.counter("sms", "reports lost") == 1)
    await sms.send(dlr_mask="1", dlr_url="no address at all")
    await until(lambda: sms.state.counter("sms", "reports lost") == 2)
    assert await sms.send("+79990000002") == ACCEPTED


# incoming SMS


async def test_an_incoming_sms_calls_the_url(sms: Sms, callbacks: CallbackServer) -> None:
    url = f"{callbacks.url}/in?from=%p&to=%P&text=%a&at=%t&id=%I"
    callbacks.answer = 204
    assert await sms.server.write("79990000001", "Привет, {мир} &=%d 😀", url) == 204
    call: dict[str, Any] = callbacks.calls[0]
    assert (call["from"], call["to"], call["text"]) == ("+79990000001", SENDER, "Привет, {мир} &=%d 😀")
    assert call["id"]


async def test_an_incoming_sms_needs_a_reachable_url(sms: Sms) -> None:
    with pytest.raises(LookupError):
        await sms.server.write("+79990000001", "hello")
    assert await sms.server.write("+79990000001", "hello", "http://127.0.0.1:9/") is None
