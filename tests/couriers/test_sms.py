"""The SMS courier, against the sandbox's gateway and a real Kannel."""

import asyncio
import re
import traceback
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from aiohttp import web

from core.courier.interface import Courier, Deferred, Rejected, Scope, Sent, Unknown
from core.errors import SetupError
from core.model.states import Reason
from couriers import sms
from couriers.sms.parts import Coding, coding_of, parts
from sandbox.magic_recipients import MAGIC
from sandbox.sms import SmsServer
from sandbox.state import World
from tests.couriers.contract import ODD_TEXTS, House, OutageContract, message
from tests.support.kannel import Kannel
from tests.support.waiting import until

MAGIC_OF = {fault.name: address for address, fault in MAGIC["sms"].items()}


class SmsHouse(House):
    module = sms
    secrets = ("sandbox",)

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.world = World()
        self.port, self.timeout, self.most_parts = 0, timedelta(seconds=30), 255

    def settings(self) -> sms.Settings:
        return sms.Settings(self.server.url, "ada", "sandbox", "Ada", most_parts=self.most_parts, timeout=self.timeout)

    def address(self, number: int) -> str:
        return f"+7999{number:07}"

    def received(self, address: str) -> list[str]:
        return [received.text for received in self.world.inbox("sms", address)]

    async def start(self) -> None:
        self.server = SmsServer(self.world, port=self.port, report_delay=0)
        await self.server.start()
        self.port = self.server.port

    async def stop(self) -> None:
        await self.server.stop()


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[SmsHouse]:
    played = SmsHouse(tmp_path)
    await played.start()
    yield played
    await played.close()
    await played.stop()


class Reports:
    """Whoever takes delivery reports: remembers each in its order."""

    def __init__(self) -> None:
        self.calls: list[dict[str, str]] = []
        self.url = ""

    async def note(self, request: web.Request) -> web.Response:
        self.calls.append({"path": request.path, **request.query})
        return web.Response()

    def statuses(self) -> list[int]:
        return [int(call["status"]) for call in self.calls]


@pytest.fixture
async def reports() -> AsyncIterator[Reports]:
    ear = Reports()
    app = web.Application()
    app.router.add_get("/{path:.*}", ear.note)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    ear.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/receipts/sms"
    yield ear
    await runner.cleanup()


async def one(courier: Courier, address: str, text: str = "hello", report: str = "") -> Any:
    return (await courier.attempt([message(address, text, report=report)]))[0]


class TestSms(OutageContract):
    pass


# failures


@pytest.mark.row("D-38")
@pytest.mark.parametrize(
    ("fault", "copies"),
    [("accepted_then_cut", 1), ("disconnect_before", 0), ("bad_gateway", 0), ("timeout", 0)],
)
async def test_a_lost_answer_is_unknown_and_asked_for_once(house: SmsHouse, fault: str, copies: int) -> None:
    """aiohttp repeats a GET by itself when the connection ends before the answer. That was a second SMS."""
    house.timeout = timedelta(seconds=1) if fault == "timeout" else house.timeout
    courier = await house.open()
    before = house.world.counted("sms", "http")
    assert isinstance(await one(courier, MAGIC_OF[fault]), Unknown)
    assert house.world.counted("sms", "http") - before == 1
    assert len(house.received(MAGIC_OF[fault])) == copies


async def test_a_busy_gateway_is_asked_again_later(house: SmsHouse) -> None:
    outcome = await one(await house.open(), MAGIC_OF["busy"])
    assert isinstance(outcome, Deferred)
    assert (outcome.reason, outcome.scope) == (Reason.PROVIDER_DOWN, Scope.RECIPIENT)


async def test_a_refused_number_is_final(house: SmsHouse) -> None:
    outcome = await one(await house.open(), MAGIC_OF["bad_number"])
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.RECIPIENT_UNREACHABLE


async def test_queued_is_accepted(house: SmsHouse) -> None:
    assert await one(await house.open(), MAGIC_OF["queued"]) == Sent()


@pytest.mark.row("D-38")
async def test_a_gateway_that_closes_kept_connections_loses_nothing(tmp_path: Path) -> None:
    """A connection kept from the last request may have gone, and the next one on it would be `unknown` for ever."""
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await reader.readuntil(b"\r\n\r\n")
        asked += 1
        writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 24\r\n\r\n0: Accepted for delivery")
        await reader.read(1)  # a second request, or the end of the connection
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/cgi-bin/sendsms"
    courier = await sms.open(sms.Settings(url, "ada", "sandbox", "Ada"), tmp_path)
    outcomes = [await one(courier, "+79991112233") for _ in range(3)]
    await courier.close()
    server.close()
    assert outcomes == [Sent()] * 3
    assert asked == 4


# what is sent


@pytest.mark.row("D-24")
async def test_a_number_as_people_write_it_reaches_its_owner(house: SmsHouse) -> None:
    assert await one(await house.open(), "8 (999) 111-22-33") == Sent()
    assert house.received("+79991112233") == ["hello"]


async def test_the_gateway_counts_as_many_parts(house: SmsHouse) -> None:
    courier = await house.open()
    for text in ("a" * 152 + "€" + "a" * 152, "я" * 66 + "😀" + "я" * 66, "я" * 70):
        before = house.world.counted("sms", "parts")
        await one(courier, house.address(1), text)
        assert house.world.counted("sms", "parts") - before == parts(text)


async def test_a_text_that_the_gateway_would_cut_is_refused_whole(house: SmsHouse) -> None:
    house.most_parts = 2
    courier = await house.open()
    assert await one(courier, house.address(1), "я" * 134) == Sent()
    outcome = await one(courier, house.address(1), "я" * 135)
    assert outcome == Rejected(Reason.CONTENT_REFUSED, "3 parts, and the gateway joins 2")
    assert house.received(house.address(1)) == ["я" * 134]


# reports


@pytest.mark.row("D-24")
async def test_reports_come_to_the_messages_own_address(house: SmsHouse, reports: Reports) -> None:
    report = f"{reports.url}?message=0.42.1&secret=a%2Bb%25d"
    assert await one(await house.open(), house.address(1), report=report) == Sent()
    await until(lambda: len(reports.calls) == 2)
    assert reports.statuses() == [8, 1]
    for call in reports.calls:
        assert (call["path"], call["message"], call["secret"]) == ("/v1/receipts/sms", "0.42.1", "a+b%d")
        assert call["id"] == house.world.inbox("sms")[0].reference


async def test_without_a_report_address_none_is_asked_for(house: SmsHouse, reports: Reports) -> None:
    assert "dlr-url" not in sms.fields(message("+79991112233"), "+79991112233")
    courier = await house.open()
    await one(courier, house.address(1))
    await one(courier, house.address(2), report=reports.url)
    await until(lambda: len(reports.calls) == 2)
    assert house.world.counted("sms", "reports") == 2


def test_the_report_address_keeps_what_it_has() -> None:
    assert sms.report_address("http://ada/x") == "http://ada/x?status=%d&id=%F&answer=%A"
    assert sms.report_address("http://ada/x?a=%20") == "http://ada/x?a=%%20&status=%d&id=%F&answer=%A"


# opening


async def test_a_wrong_password_is_told_without_showing_it(house: SmsHouse) -> None:
    settings = sms.Settings(house.server.url, "ada", "hidden", "Ada")
    with pytest.raises(SetupError, match="ADA_SMS_PASSWORD") as told:
        await sms.open(settings, house.directory)
    assert "hidden" not in f"{told.value}{settings}"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{port}/nowhere", "http://127.0.0.1:1/cgi-bin/sendsms", "nonsense", "http://["]
)
async def test_a_wrong_address_is_told(house: SmsHouse, url: str) -> None:
    with pytest.raises(SetupError, match="ADA_SMS_URL") as told:
        await sms.open(sms.Settings(url.format(port=house.port), "ada", "hidden", "Ada"), house.directory)
    assert "hidden" not in "".join(traceback.format_exception(told.value)).replace('"hidden"', "")


async def test_opening_sends_nothing(house: SmsHouse) -> None:
    await house.open()
    assert house.world.inbox() == []


# a real Kannel

TEXTS = [*ODD_TEXTS, "[€]{}~^|\\ and plain", "a+b&c=d%e", "я" * 300, "a" * 400, "😀" * 35]


@pytest.mark.row("D-24", "D-25")
async def test_a_real_kannel_delivers_it_letter_for_letter_in_as_many_parts(kannel: Kannel, tmp_path: Path) -> None:
    courier = await sms.open(sms.Settings(kannel.url, kannel.username, kannel.password, "Ada"), tmp_path)
    numbers = [f"+799900000{number:02}" for number in range(len(TEXTS))]
    outcomes = [await one(courier, number, text) for number, text in zip(numbers, TEXTS, strict=True)]
    await courier.close()
    assert outcomes == [Sent()] * len(TEXTS)
    expected = sum(parts(text) for text in TEXTS)
    await until(lambda: len(kannel.delivered) == expected, within=20)
    assert [shown(kannel, *pair) for pair in zip(numbers, map(coding_of, TEXTS), strict=True)] == TEXTS


def parts_of(kannel: Kannel, number: str) -> list[str]:
    """Its parts as Kannel's fake network writes them: `text TEXT`, `ucs-2 BYTES` or `udh HEADER data BYTES`."""
    return sorted(line.split(" ", 2)[2] for line in kannel.delivered if line.split(" ", 2)[1] == number)


def shown(kannel: Kannel, number: str, coding: Coding) -> str:
    """What a telephone shows of them. The header says which part it is."""
    contents = [re.sub(r"^(udh \S+ )?\S+ ", "", part) for part in parts_of(kannel, number)]
    if coding is Coding.GSM:
        return "".join(contents)
    return b"".join(unquote_to_bytes(content.replace("+", " ")) for content in contents).decode("utf-16-be")


@pytest.mark.row("D-24", "D-37")
async def test_a_real_kannel_reports_to_the_messages_own_address(
    kannel: Kannel, reports: Reports, tmp_path: Path
) -> None:
    courier = await sms.open(sms.Settings(kannel.url, kannel.username, kannel.password, "Ada"), tmp_path)
    for number in range(3):
        report = f"{reports.url}?message={number}&secret=a%2Bb"
        assert await one(courier, f"8 999 000-00-0{number}", report=report) == Sent()
    await courier.close()
    await until(lambda: len(reports.calls) == 6, within=20)
    assert {call["message"] for call in reports.calls} == {*"012"}
    assert {call["secret"] for call in reports.calls} == {"a+b"}
    assert sorted(reports.statuses()) == [1, 1, 1, 8, 8, 8]


async def test_a_real_kannel_cuts_what_is_longer_than_it_is_set_for(kannel: Kannel, tmp_path: Path) -> None:
    """Its `max-messages` is 10 here. It accepts all and delivers ten parts: so the courier must know the number."""
    settings = sms.Settings(kannel.url, kannel.username, kannel.password, "Ada")
    for number, most_parts in enumerate((255, 10)):
        courier = await sms.open(replace(settings, most_parts=most_parts), tmp_path)
        outcome = await one(courier, f"+7999000000{number}", "я" * 700)
        await courier.close()
        assert isinstance(outcome, Sent if most_parts == 255 else Rejected)
    await until(lambda: len(kannel.delivered) == 10, within=20)


async def test_a_real_kannel_refuses_at_the_start_what_it_will_not_take_later(kannel: Kannel, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="ADA_SMS_PASSWORD"):
        await sms.open(sms.Settings(kannel.url, kannel.username, "wrong", "Ada"), tmp_path)
    with pytest.raises(SetupError, match="ADA_SMS_URL"):
        await sms.open(sms.Settings(f"{kannel.url}x", kannel.username, kannel.password, "Ada"), tmp_path)
    assert kannel.delivered == []
