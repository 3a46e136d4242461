"""The SMS gateway of the sandbox: what it takes, what it counts, what it reports."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sandbox.sms.alphabet import BASIC, EXTENSION, GSM, UCS2, as_gsm, parts
from tests.sandbox.conftest import Listening, Sms
from tests.support.waiting import until

pytestmark = pytest.mark.row("D-43")

ACCEPTED = (202, "0: Accepted for delivery")


def reporting(listening: Listening, mask: int = 31) -> dict[str, str]:
    return {"dlr_mask": str(mask), "dlr_url": f"{listening.url}/report?secret=s3cret&state=%d&id=%F&text=%A"}


async def states_once(sms: Sms, listening: Listening, count: int) -> list[int]:
    """Wait until so many reports came and were answered, and return them all."""
    await until(lambda: sms.world.counted("sms", "reports") == count)
    return listening.states()


# taking messages


async def test_a_message_reaches_its_person(sms: Sms) -> None:
    assert await sms.send("+79990000001", "hello") == ACCEPTED
    assert [(one.address, one.text, one.random_id) for one in sms.world.inbox("sms")] == [
        ("+79990000001", "hello", None)
    ]


async def test_several_numbers_get_a_message_each(sms: Sms) -> None:
    assert await sms.send("+79990000001 79990000002 nonsense") == ACCEPTED
    assert [one.address for one in sms.world.inbox("sms")] == ["+79990000001", "+79990000002"]
    assert len({one.reference for one in sms.world.inbox("sms")}) == 2
    assert sms.world.counted("sms", "messages") == 2


@pytest.mark.parametrize(
    "user", [{"username": "ada"}, {"password": "sandbox"}, {"username": "x", "password": "sandbox"}, {}]
)
async def test_wrong_credentials_are_refused(sms: Sms, user: dict[str, str]) -> None:
    assert await sms.ask(to="+7", text="x", **{"from": "Ada"}, **user) == (403, "Authorization failed for sendsms")
    assert sms.world.inbox() == []


@pytest.mark.parametrize(
    ("more", "words"),
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
async def test_what_is_refused_has_kannels_words(sms: Sms, more: dict[str, str], words: str) -> None:
    known = {"username": "ada", "password": "sandbox", "from": "Ada", "to": "+79990000001", "text": "hello"}
    assert await sms.ask(**{**known, **{name.replace("_", "-"): value for name, value in more.items()}}) == (400, words)
    assert sms.world.inbox() == []


@pytest.mark.parametrize(
    ("text", "more", "arrives"),
    [
        ("Привет, {мир} 😀", {"coding": "2"}, "Привет, {мир} 😀"),
        ("Привет €", {"coding": "0"}, "?????? €"),
        ("Привет €", {}, "?????? €"),
        ("a\nb\t", {"coding": "0"}, "a\nb?"),
    ],
)
async def test_the_coding_decides_what_arrives(sms: Sms, text: str, more: dict[str, str], arrives: str) -> None:
    await sms.send(text=text, **more)
    assert sms.texts("+79990000001") == [arrives]


async def test_bytes_that_are_not_in_the_charset_are_refused(sms: Sms) -> None:
    query = "username=ada&password=sandbox&from=Ada&to=%2B7999&text=%FF&charset=utf-8&coding=2"
    async with sms.session.get(f"{sms.server.url}?{query}") as answer:
        assert (answer.status, await answer.text()) == (400, "Charset or body misformed, rejected")


@pytest.mark.row("D-25")
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_gsm_text_keeps_every_letter_of_its_alphabet(text: str) -> None:
    arrived = as_gsm(text)
    assert all(
        one == other or (other == "?" and one not in BASIC | EXTENSION)
        for one, other in zip(text, arrived, strict=True)
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
def test_parts_never_cut_a_pair(text: str, coding: int, expected: int) -> None:
    assert parts(text, coding) == expected


@given(st.text(st.sampled_from("a€[я"), max_size=500), st.sampled_from([GSM, UCS2]))
@example("€" * 154, GSM)
def test_parts_are_as_many_as_a_greedy_cut_makes(text: str, coding: int) -> None:
    """A slow cut, letter by letter, with the lengths of the standard."""
    alone, joined = (160, 153) if coding == GSM else (70, 67)
    sizes = [2 if coding == GSM and letter in "€[" else 1 for letter in text]
    pieces = [0]
    for size in sizes:
        if pieces[-1] + size > joined:
            pieces.append(0)
        pieces[-1] += size
    assert parts(text, coding) == (1 if sum(sizes) <= alone else len(pieces))


async def test_parts_are_counted_for_every_number(sms: Sms) -> None:
    await sms.send("+79990000001 +79990000002", "я" * 71, coding="2")
    assert sms.world.counted("sms", "parts") == 4


# reports


@pytest.mark.parametrize(("mask", "states"), [(31, [8, 1]), (1, [1]), (8, [8]), (9, [8, 1])])
async def test_the_mask_chooses_the_reports(sms: Sms, listening: Listening, mask: int, states: list[int]) -> None:
    await sms.send(**reporting(listening, mask))
    assert await states_once(sms, listening, len(states)) == states


@pytest.mark.parametrize("mask", [0, 2, 16])
async def test_who_asks_for_other_reports_gets_none(sms: Sms, listening: Listening, mask: int) -> None:
    await sms.send(**reporting(listening, mask))
    await sms.send("+79990000002", **reporting(listening, 1))
    assert await states_once(sms, listening, 1) == [1]


async def test_a_report_names_the_message_as_the_inbox_does(sms: Sms, listening: Listening) -> None:
    await sms.send(**reporting(listening, 1))
    await states_once(sms, listening, 1)
    call, received = listening.calls[0], sms.world.inbox("sms")[0]
    assert (call["id"], call["secret"]) == (received.reference, "s3cret")
    assert "stat:DELIVRD err:000" in call["text"]


async def test_all_escapes_are_filled(sms: Sms, listening: Listening) -> None:
    url = f"{listening.url}/r?state=%d&to=%p&from=%P&at=%t&unix=%T&smsc=%i&user=%n&strange=%y&id=%I&percent=%%25"
    await sms.send("+79990000001", dlr_mask="1", dlr_url=url)
    await states_once(sms, listening, 1)
    call = listening.calls[0]
    assert (call["to"], call["from"], call["smsc"], call["user"]) == ("+79990000001", "Ada", "sandbox", "ada")
    assert (call["strange"], call["percent"]) == ("%y", "%")
    assert int(call["unix"]) > 0
    assert call["at"][4] == "-"


async def test_a_report_that_nobody_takes_is_counted_and_does_no_harm(sms: Sms) -> None:
    await sms.send(dlr_mask="1", dlr_url="http://127.0.0.1:9/?state=%d")
    await until(lambda: sms.world.counted("sms", "reports lost") == 1)
    await sms.send(dlr_mask="1", dlr_url="no address at all")
    await until(lambda: sms.world.counted("sms", "reports lost") == 2)
    assert await sms.send("+79990000002") == ACCEPTED


# people write


async def test_a_person_writes(sms: Sms, listening: Listening) -> None:
    url = f"{listening.url}/in?from=%p&to=%P&text=%a&at=%t&id=%I"
    listening.answer = 204
    assert await sms.server.write("79990000001", "Привет, {мир} &=%d 😀", url) == 204
    call: dict[str, Any] = listening.calls[0]
    assert (call["from"], call["to"], call["text"]) == ("+79990000001", "Ada", "Привет, {мир} &=%d 😀")
    assert call["id"]


async def test_nobody_hears_a_person_without_an_address(sms: Sms) -> None:
    with pytest.raises(LookupError):
        await sms.server.write("+79990000001", "hello")
    assert await sms.server.write("+79990000001", "hello", "http://127.0.0.1:9/") is None
