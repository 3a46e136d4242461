"""The SMS courier, against the sandbox's gateway and a real Kannel."""

import asyncio
import gc
import re
import traceback
import warnings
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from aiohttp import web

from cli.processes.embedded_valkey import free_port
from core.model.text.text_parts import Coding, coding_of, sms_parts
from couriers.sending import Courier, Deferred, Reason, Rejected, Scope, Sent, SetupError, Unknown
from couriers.sms import courier as sms
from couriers.sms.reports import STATUS_BITS
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.sms import SmsServer
from sandbox.state import SandboxState
from tests.couriers.contract import UNUSUAL_TEXTS, OutageContract, Provider, message, running
from tests.support.kannel import Kannel
from tests.support.serving import serving_app
from tests.support.waiting import until

MAGIC_ADDRESSES = {fault.name: address for address, fault in MAGIC_RECIPIENTS["sms"].items()}


class SmsProvider(Provider):
    module = sms
    secrets = ("sandbox",)

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.state = SandboxState()
        self.port, self.timeout, self.most_parts = free_port(), timedelta(seconds=30), 255

    def settings(self) -> sms.Settings:
        return sms.Settings(self.server.url, "ada", "sandbox", "Ada", most_parts=self.most_parts, timeout=self.timeout)

    def address(self, number: int) -> str:
        return f"+7999{number:07}"

    def received(self, address: str) -> list[str]:
        return [received.text for received in self.state.inbox("sms", address)]

    async def start(self) -> None:
        self.server = SmsServer(self.state, port=self.port, report_delay=0)
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop()


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[SmsProvider]:
    async with running(SmsProvider(tmp_path)) as opened:
        yield opened


class ReportServer:
    """A server for delivery reports; keeps them in the order received."""

    def __init__(self) -> None:
        self.calls: list[dict[str, str]] = []
        self.url = ""

    async def receive(self, request: web.Request) -> web.Response:
        self.calls.append({"path": request.path, **request.query})
        return web.Response()

    def statuses(self) -> list[int]:
        return [int(call["status"]) for call in self.calls]


@pytest.fixture
async def reports() -> AsyncIterator[ReportServer]:
    server = ReportServer()
    app = web.Application()
    app.router.add_get("/{path:.*}", server.receive)
    async with serving_app(app) as url:
        server.url = f"{url}/v1/receipts/sms"
        yield server


async def send_one(courier: Courier, address: str, text: str = "hello", report: str = "") -> Any:
    return (await courier.attempt([message(address, text, report=report)]))[0]


class TestSms(OutageContract):
    pass


# failures


@pytest.mark.parametrize(
    ("fault", "copies"),
    [("accepted_then_cut", 1), ("disconnect_before", 0), ("bad_gateway", 0), ("timeout", 0)],
)
async def test_a_lost_answer_is_unknown_and_the_request_is_not_repeated(
    provider: SmsProvider, fault: str, copies: int
) -> None:
    """aiohttp repeats a GET when the connection ends before the answer. That was a second SMS."""
    provider.timeout = timedelta(seconds=1) if fault == "timeout" else provider.timeout
    courier = await provider.open()
    before = provider.state.counter("sms", "http")
    assert isinstance(await send_one(courier, MAGIC_ADDRESSES[fault]), Unknown)
    assert provider.state.counter("sms", "http") - before == 1
    assert len(provider.received(MAGIC_ADDRESSES[fault])) == copies


async def test_a_busy_gateway_defers_the_message(provider: SmsProvider) -> None:
    outcome = await send_one(await provider.open(), MAGIC_ADDRESSES["busy"])
    assert isinstance(outcome, Deferred)
    assert (outcome.reason, outcome.scope) == (Reason.PROVIDER_DOWN, Scope.RECIPIENT)


async def test_a_refused_number_is_rejected(provider: SmsProvider) -> None:
    outcome = await send_one(await provider.open(), MAGIC_ADDRESSES["bad_number"])
    assert isinstance(outcome, Rejected)
    assert outcome.reason is Reason.RECIPIENT_UNREACHABLE


async def test_queued_counts_as_sent(provider: SmsProvider) -> None:
    assert await send_one(await provider.open(), MAGIC_ADDRESSES["queued"]) == Sent()


async def test_each_request_has_its_own_connection(tmp_path: Path) -> None:
    """On a kept connection that the gateway closes meanwhile, a message would end as `unknown`."""
    requests = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        await reader.readuntil(b"\r\n\r\n")
        requests += 1
        writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 24\r\n\r\n0: Accepted for delivery")
        await reader.read(1)  # a second request, or the end of the connection
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/cgi-bin/sendsms"
    courier = await sms.open(sms.Settings(url, "ada", "sandbox", "Ada"), tmp_path)
    outcomes = [await send_one(courier, "+79991112233") for _ in range(3)]
    await courier.close()
    server.close()
    assert outcomes == [Sent()] * 3
    assert requests == 4


# the request


async def test_a_number_in_a_usual_written_form_is_converted(provider: SmsProvider) -> None:
    assert await send_one(await provider.open(), "8 (999) 111-22-33") == Sent()
    assert provider.received("+79991112233") == ["hello"]


async def test_the_gateway_counts_the_same_number_of_parts(provider: SmsProvider) -> None:
    courier = await provider.open()
    for text in ("a" * 152 + "€" + "a" * 152, "я" * 66 + "😀" + "я" * 66, "я" * 70):
        before = provider.state.counter("sms", "parts")
        await send_one(courier, provider.address(1), text)
        assert provider.state.counter("sms", "parts") - before == sms_parts(text)


async def test_a_text_that_the_gateway_would_cut_is_rejected(provider: SmsProvider) -> None:
    provider.most_parts = 2
    courier = await provider.open()
    assert await send_one(courier, provider.address(1), "я" * 134) == Sent()
    outcome = await send_one(courier, provider.address(1), "я" * 135)
    assert outcome == Rejected(Reason.CONTENT_REFUSED, "3 parts, and the gateway joins 2")
    assert provider.received(provider.address(1)) == ["я" * 134]


# delivery reports


async def test_delivery_reports_go_to_the_messages_own_address(provider: SmsProvider, reports: ReportServer) -> None:
    report = f"{reports.url}?message=0.42.1&secret=a%2Bb%25d"
    assert await send_one(await provider.open(), provider.address(1), report=report) == Sent()
    await until(lambda: len(reports.calls) == 2)
    assert reports.statuses() == [8, 1]
    for call in reports.calls:
        assert (call["path"], call["message"], call["secret"]) == ("/v1/receipts/sms", "0.42.1", "a+b%d")
        assert call["id"] == provider.state.inbox("sms")[0].reference


async def test_without_a_report_address_no_report_is_requested(provider: SmsProvider, reports: ReportServer) -> None:
    assert "dlr-url" not in sms.sendsms_parameters(message("+79991112233"), "+79991112233")
    courier = await provider.open()
    await send_one(courier, provider.address(1))
    await send_one(courier, provider.address(2), report=reports.url)
    await until(lambda: len(reports.calls) == 2)
    assert provider.state.counter("sms", "reports") == 2


@pytest.mark.parametrize(
    ("fault", "statuses"), [("report_rejected", [16]), ("report_failed", [8, 2]), ("report_buffered", [8, 4, 1])]
)
async def test_every_kind_of_report_is_requested(
    provider: SmsProvider, reports: ReportServer, fault: str, statuses: list[int]
) -> None:
    """The gateway sends only the kinds in dlr-mask; without one of them an SMS would stay `sent` for ever."""
    assert await send_one(await provider.open(), MAGIC_ADDRESSES[fault], report=reports.url) == Sent()
    await until(lambda: len(reports.calls) == len(statuses))
    assert reports.statuses() == statuses


def test_every_status_that_a_report_can_have_is_requested() -> None:
    requested = int(sms.sendsms_parameters(message("1", report="http://localhost"), "1")["dlr-mask"])
    assert {bit for bit, _ in STATUS_BITS} == {bit for bit in (1, 2, 4, 8, 16) if requested & bit}


def test_the_escapes_are_added_to_the_report_address() -> None:
    assert sms.dlr_url("http://ada/x") == "http://ada/x?status=%d&id=%F&answer=%A"
    assert sms.dlr_url("http://ada/x?a=%20") == "http://ada/x?a=%%20&status=%d&id=%F&answer=%A"


# opening


async def test_a_wrong_password_is_a_setup_error_that_does_not_show_it(provider: SmsProvider) -> None:
    settings = sms.Settings(provider.server.url, "ada", "hidden", "Ada")
    with pytest.raises(SetupError, match="ADA_SMS_PASSWORD") as error:
        await sms.open(settings, provider.directory)
    assert "hidden" not in f"{error.value}{settings}"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{port}/nowhere", "http://127.0.0.1:1/cgi-bin/sendsms", "nonsense", "http://["]
)
async def test_a_wrong_url_is_a_setup_error_that_does_not_show_the_password(provider: SmsProvider, url: str) -> None:
    with pytest.raises(SetupError, match="ADA_SMS_URL") as error:
        await sms.open(sms.Settings(url.format(port=provider.port), "ada", "hidden", "Ada"), provider.directory)
    assert "hidden" not in "".join(traceback.format_exception(error.value)).replace('"hidden"', "")


async def test_open_sends_no_message(provider: SmsProvider) -> None:
    await provider.open()
    assert provider.state.inbox() == []


# a real Kannel

TEXTS = [*UNUSUAL_TEXTS, "[€]{}~^|\\ and plain", "a+b&c=d%e", "я" * 300, "a" * 400, "😀" * 35]


async def test_a_real_kannel_delivers_texts_unchanged_in_the_same_number_of_parts(
    kannel: Kannel, tmp_path: Path
) -> None:
    courier = await sms.open(sms.Settings(kannel.url, kannel.username, kannel.password, "Ada"), tmp_path)
    numbers = [f"+799900000{number:02}" for number in range(len(TEXTS))]
    outcomes = [await send_one(courier, number, text) for number, text in zip(numbers, TEXTS, strict=True)]
    await courier.close()
    assert outcomes == [Sent()] * len(TEXTS)
    expected = sum(sms_parts(text) for text in TEXTS)
    await until(lambda: len(kannel.delivered) == expected)
    assert [shown_text(kannel, *pair) for pair in zip(numbers, map(coding_of, TEXTS), strict=True)] == TEXTS


def parts_of(kannel: Kannel, number: str) -> list[str]:
    """Return the parts as Kannel's fake network writes them: `text TEXT`, `ucs-2 BYTES` or `udh HEADER data BYTES`."""
    return sorted(line.split(" ", 2)[2] for line in kannel.delivered if line.split(" ", 2)[1] == number)


def shown_text(kannel: Kannel, number: str, coding: Coding) -> str:
    """Return the text that a telephone shows. The header holds the number of the part."""
    contents = [re.sub(r"^(udh \S+ )?\S+ ", "", part) for part in parts_of(kannel, number)]
    if coding is Coding.GSM:
        return "".join(contents)
    return b"".join(unquote_to_bytes(content.replace("+", " ")) for content in contents).decode("utf-16-be")


async def test_a_real_kannel_sends_reports_to_the_messages_own_address(
    kannel: Kannel, reports: ReportServer, tmp_path: Path
) -> None:
    courier = await sms.open(sms.Settings(kannel.url, kannel.username, kannel.password, "Ada"), tmp_path)
    for number in range(3):
        report = f"{reports.url}?message={number}&secret=a%2Bb"
        assert await send_one(courier, f"8 999 000-00-0{number}", report=report) == Sent()
    await courier.close()
    await until(lambda: len(reports.calls) == 6)
    assert {call["message"] for call in reports.calls} == {*"012"}
    assert {call["secret"] for call in reports.calls} == {"a+b"}
    assert sorted(reports.statuses()) == [1, 1, 1, 8, 8, 8]


async def test_a_real_kannel_drops_parts_beyond_its_max_messages(kannel: Kannel, tmp_path: Path) -> None:
    """Its `max-messages` is 10 here. It accepts the text and delivers ten parts, so the courier must know the limit."""
    settings = sms.Settings(kannel.url, kannel.username, kannel.password, "Ada")
    for number, most_parts in enumerate((255, 10)):
        courier = await sms.open(replace(settings, most_parts=most_parts), tmp_path)
        outcome = await send_one(courier, f"+7999000000{number}", "я" * 700)
        await courier.close()
        assert isinstance(outcome, Sent if most_parts == 255 else Rejected)
    await until(lambda: len(kannel.delivered) >= 10, within=40)
    assert len(kannel.delivered) == 10


async def test_open_detects_wrong_settings_with_a_real_kannel(kannel: Kannel, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="ADA_SMS_PASSWORD"):
        await sms.open(sms.Settings(kannel.url, kannel.username, "wrong", "Ada"), tmp_path)
    with pytest.raises(SetupError, match="ADA_SMS_URL"):
        await sms.open(sms.Settings(f"{kannel.url}x", kannel.username, kannel.password, "Ada"), tmp_path)
    assert kannel.delivered == []


async def test_a_refused_account_leaves_no_session_open(provider: SmsProvider, tmp_path: Path) -> None:
    unclosed: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: unclosed.append(context["message"]))
    for _ in range(3):
        with pytest.raises(SetupError), warnings.catch_warnings(action="ignore"):
            await sms.open(replace(provider.settings(), password="wrong"), tmp_path)
        gc.collect()
    assert unclosed == []
