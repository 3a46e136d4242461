"""Every fault of the SMS sandbox, by magic number and by rule."""

import asyncio

import pytest
from aiohttp import ClientError

from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.state import Fault, Rule
from tests.sandbox.conftest import CallbackServer, Sms
from tests.support.waiting import until

NEVER = 0.3  # seconds; a normal answer takes less than a hundredth of it
ACCEPTED = (202, "0: Accepted for delivery")
BY_FAULT = {fault.name: address for address, fault in MAGIC_RECIPIENTS["sms"].items()}


def report_parameters(callbacks: CallbackServer, mask: int = 31) -> dict[str, str]:
    return {"dlr_mask": str(mask), "dlr_url": f"{callbacks.url}/report?secret=s3cret&state=%d&id=%F&text=%A"}


async def reported_states(sms: Sms, callbacks: CallbackServer, count: int) -> list[int]:
    """Wait for `count` delivery reports and return their states."""
    await until(lambda: sms.state.counter("sms", "reports") == count)
    return callbacks.states()


@pytest.mark.parametrize(
    ("name", "states", "received"),
    [
        ("report_failed", [8, 2], False),
        ("report_rejected", [16], False),
        ("report_buffered", [8, 4, 1], True),
        ("report_twice", [8, 8, 1, 1], True),
        ("report_out_of_order", [1, 8], True),
        ("queued", [8, 1], True),
    ],
)
async def test_the_reported_states(
    sms: Sms, callbacks: CallbackServer, name: str, states: list[int], received: bool
) -> None:
    number = BY_FAULT[name]
    response = "3: Queued for later delivery" if name == "queued" else ACCEPTED[1]
    assert await sms.send(number, **report_parameters(callbacks)) == (202, response)
    assert await reported_states(sms, callbacks, len(states)) == states
    assert (sms.texts(number) == ["hello"]) == received


async def test_no_report(sms: Sms, callbacks: CallbackServer) -> None:
    number = BY_FAULT["no_report"]
    assert await sms.send(number, **report_parameters(callbacks)) == ACCEPTED
    await sms.send("+79990000002", **report_parameters(callbacks, 1))
    assert await reported_states(sms, callbacks, 1) == [1]
    assert sms.texts(number) == ["hello"]


async def test_report_before_answer(sms: Sms, callbacks: CallbackServer) -> None:
    assert await sms.send(BY_FAULT["report_before_answer"], **report_parameters(callbacks)) == ACCEPTED
    assert callbacks.states() == [8, 1]


async def test_report_late(sms: Sms, callbacks: CallbackServer) -> None:
    sms.state.add_rule(Rule("sms", Fault("report_late", 1), "+79990000001"))
    await sms.send("+79990000001", **report_parameters(callbacks, 1))
    await sms.send("+79990000002", **report_parameters(callbacks, 8))
    assert await reported_states(sms, callbacks, 1) == [8]
    assert await reported_states(sms, callbacks, 2) == [8, 1]


@pytest.mark.parametrize(
    ("given", "called"),
    [
        ("/report?secret=s3cret&state=%d", {"path": "/report", "secret": "forgeds3cret", "state": "1"}),
        ("/report/s3cret?state=%d", {"path": "/report/s3cret-forged", "state": "1"}),
    ],
)
async def test_wrong_secret(sms: Sms, callbacks: CallbackServer, given: str, called: dict[str, str]) -> None:
    await sms.send(BY_FAULT["wrong_secret"], dlr_mask="1", dlr_url=callbacks.url + given)
    await until(lambda: callbacks.calls)
    assert callbacks.calls == [called]


async def test_accepted_then_cut(sms: Sms, callbacks: CallbackServer) -> None:
    number = BY_FAULT["accepted_then_cut"]
    with pytest.raises((ClientError, ConnectionError)):
        await sms.send(number, **report_parameters(callbacks))
    assert sms.texts(number) == ["hello"]
    assert await reported_states(sms, callbacks, 2) == [8, 1]


async def test_disconnect_before(sms: Sms) -> None:
    with pytest.raises((ClientError, ConnectionError)):
        await sms.send(BY_FAULT["disconnect_before"])
    assert sms.state.inbox() == []


async def test_timeout(sms: Sms) -> None:
    request = asyncio.ensure_future(sms.send(BY_FAULT["timeout"]))
    await until(lambda: sms.state.counter("sms", "http") == 1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(request, NEVER)
    assert sms.state.inbox() == []


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("bad_number", (400, "Number(s) has/have been denied by white- and/or black-lists.")),
        ("busy", (503, "Temporal failure, try again later.")),
        ("unauthorized", (403, "Authorization failed for sendsms")),
    ],
)
async def test_refusals(sms: Sms, name: str, answer: tuple[int, str]) -> None:
    assert await sms.send(BY_FAULT[name]) == answer
    assert sms.state.inbox() == []


async def test_bad_gateway(sms: Sms) -> None:
    status, text = await sms.send(BY_FAULT["bad_gateway"])
    assert (status, text[:6]) == (502, "<html>")
    assert sms.state.inbox() == []


async def test_a_bad_number_among_valid_ones_is_silently_dropped(sms: Sms) -> None:
    assert await sms.send(f"+79990000001 {BY_FAULT['bad_number']}") == ACCEPTED
    assert [one.address for one in sms.state.inbox("sms")] == ["+79990000001"]


async def test_a_rule_for_requests_counts_requests_not_numbers(sms: Sms) -> None:
    sms.state.add_rule(Rule("sms", Fault("busy"), times=2))
    answers = [await sms.send("+79990000001 +79990000002") for _ in range(3)]
    assert [status for status, _ in answers] == [503, 503, 202]


async def test_every_magic_number_is_tested_here() -> None:
    tested = "report_failed report_rejected report_buffered report_twice report_out_of_order queued no_report "
    tested += "report_before_answer report_late wrong_secret accepted_then_cut disconnect_before timeout bad_number "
    assert set(BY_FAULT) == {*(tested + "busy bad_gateway unauthorized no_money not_json").split()}
