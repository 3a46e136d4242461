"""The courier apprise: the real library against doubles of ntfy, Mattermost and Zulip, and of a plain JSON service."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer, unused_port
from apprise.plugins.zulip import NotifyZulip

from core.model.people import faults_of_contacts
from couriers.apprise import courier as apprise
from couriers.apprise.courier import outcome_of
from couriers.apprise.watched_call import WatchedCall
from couriers.sending import Courier, Deferred, Reason, Rejected, Scope, Sent, SetupError, Unknown
from tests.couriers.contract import Contract, Provider, running, send_one

TOKEN = "3ccdd113474722377935511fc85d3dd4"
SERVICES = ("ntfy", "mattermost", "zulip")
LIMIT = timedelta(seconds=20)


class AppriseProvider(Provider):
    """HTTP services on one port. `status`: of the next responses; 0 ends the connection without one. `requests`: path
    and body of each request.
    """

    module = apprise
    secrets = (TOKEN,)

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.status = 200
        self.requests: list[tuple[str, str]] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        self._server = TestServer(application)

    async def start(self) -> None:
        await self._server.start_server()

    async def stop(self) -> None:
        await self._server.close()

    async def _answer(self, request: web.Request) -> web.Response:
        self.requests.append((request.path, await request.text()))
        await self.may_answer.wait()
        if not self.status and request.transport:
            request.transport.close()
        return web.json_response({"result": "success"}, status=self.status or 200, headers={"Location": "/elsewhere"})

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.port}"

    def settings(self) -> apprise.Settings:
        rooms = {
            "ntfy": f"ntfy://{TOKEN}@{self.host}/topic?auth=token",
            "mattermost": f"mmost://{self.host}/{TOKEN}",
            "zulip": f"zulip://ada-bot@university/{TOKEN}/staff",
            "closed": f"json://127.0.0.1:{unused_port()}/{TOKEN}",
            "mail": f"mailto://ada:{TOKEN}@example.org:{self._server.port}?smtp=127.0.0.1&to=anna@example.org",
            **{f"room-{number}": f"json://{self.host}/{TOKEN}/{number}" for number in range(64)},
        }
        text = "  # of the tests\n" + "\n".join(f"{name}={url}" for name, url in rooms.items())
        return apprise.Settings(text, LIMIT, allow_private=True)

    def address(self, number: int) -> str:
        return f"room-{number}"

    def received(self, address: str) -> list[str]:
        path = f"/{TOKEN}/{address.removeprefix('room-')}"
        return [json.loads(body)["message"] for found, body in self.requests if found == path]

    async def open_with(self, **changes: Any) -> Courier:
        courier = await apprise.open(apprise.Settings(**{**vars(self.settings()), **changes}), self.directory)
        self.opened.append(courier)
        return courier


@pytest.fixture
async def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AppriseProvider]:
    async with running(AppriseProvider(tmp_path)) as started:
        monkeypatch.setattr(NotifyZulip, "notify_url", f"http://{started.host}/{{org}}/api/v1/messages")
        yield started


class TestApprise(Contract):
    unaddressable = "nobody"


@pytest.mark.parametrize("service", SERVICES)
async def test_the_status_of_the_response_decides(provider: AppriseProvider, service: str) -> None:
    courier = await provider.open()
    found = {}
    for provider.status in (200, 403, 404, 400, 429, 302, 500, 502, 0):
        found[provider.status] = await send_one(courier, service, "Совещание в 12 <b>")
    kinds = {status: type(outcome) for status, outcome in found.items()}
    unknown = dict.fromkeys((302, 500, 502, 0), Unknown)
    assert kinds == {200: Sent, 403: Rejected, 404: Rejected, 400: Rejected, 429: Deferred, **unknown}
    assert (found[404].reason, found[400].reason) == (Reason.RECIPIENT_UNREACHABLE, Reason.CONTENT_REFUSED)
    assert (found[429].reason, found[429].scope, found[429].is_guess) == (Reason.THROTTLED, Scope.CHAT, True)
    assert found[403].detail.endswith("answers 403")
    assert found[0].detail.endswith("does not answer")
    assert len(provider.requests) == len(found)  # neither the library nor a redirect repeats
    assert not any(TOKEN in repr(outcome) for outcome in found.values())


async def test_each_service_gets_the_text_in_its_own_form(provider: AppriseProvider) -> None:
    courier = await provider.open()
    for service in SERVICES:
        assert await send_one(courier, service, "Совещание в 12 <b>") == Sent()
    (_, ntfy), (mattermost_path, mattermost), (zulip_path, zulip) = provider.requests
    assert json.loads(ntfy) == {"topic": "topic", "message": "Совещание в 12 <b>"}
    assert (mattermost_path, json.loads(mattermost)["text"]) == (f"/hooks/{TOKEN}", "Совещание в 12 <b>")
    assert zulip_path == "/university/api/v1/messages"
    assert "%D0%A1%D0%BE%D0%B2%D0%B5%D1%89%D0%B0%D0%BD%D0%B8%D0%B5" in zulip
    assert "to=staff" in zulip


async def test_a_long_text_goes_in_several_messages(provider: AppriseProvider) -> None:
    text = " ".join(f"word{number}" for number in range(600))
    assert await send_one(await provider.open(), "mattermost", text) == Sent()
    parts = [json.loads(body)["text"] for _, body in provider.requests]
    assert len(parts) == 2
    assert " ".join(parts) == text


async def test_a_refused_connection_has_sent_nothing_and_is_tried_again(provider: AppriseProvider) -> None:
    outcome = await send_one(await provider.open(), "closed")
    assert isinstance(outcome, Deferred)
    assert outcome.reason is Reason.PROVIDER_DOWN


async def test_a_response_that_does_not_come_in_time_leaves_the_message_unknown(provider: AppriseProvider) -> None:
    courier = await provider.open_with(timeout=timedelta(milliseconds=300))
    provider.may_answer.clear()
    assert isinstance(await send_one(courier, "room-1"), Unknown)
    provider.may_answer.set()


async def test_a_call_that_still_waits_for_a_thread_is_surely_not_sent(provider: AppriseProvider) -> None:
    courier = await provider.open_with(timeout=timedelta(milliseconds=500))
    provider.may_answer.clear()
    outcomes = await asyncio.gather(*(send_one(courier, f"room-{number}") for number in range(20)))
    unknown = sum(isinstance(outcome, Unknown) for outcome in outcomes)
    deferred = sum(isinstance(outcome, Deferred) for outcome in outcomes)
    assert unknown + deferred == 20
    assert deferred >= 4  # there are 16 threads
    provider.may_answer.set()
    await courier.close()
    assert len(provider.requests) <= unknown


async def test_an_abandoned_call_sends_nothing_more() -> None:
    exchange = WatchedCall(allow_private=True)
    exchange.abandon()
    with pytest.raises(ConnectionAbortedError):
        exchange.check_request()
    assert not exchange.is_unanswered


async def test_a_private_address_is_reached_only_if_it_is_allowed(provider: AppriseProvider) -> None:
    courier = await provider.open_with(allow_private=False)
    for room in (*SERVICES, "room-1"):
        outcome = await send_one(courier, room)
        assert isinstance(outcome, Rejected)
        assert "ADA_WEBHOOK_ALLOW_PRIVATE" in outcome.detail
    assert provider.requests == []


async def test_a_service_that_is_not_called_over_http_is_not_called_at_all(provider: AppriseProvider) -> None:
    outcome = await send_one(await provider.open(), "mail")
    assert outcome == Rejected(Reason.RECIPIENT_UNREACHABLE, "E-Mail: it is not called by HTTP")


@pytest.mark.parametrize(
    ("statuses", "is_accepted", "expected"),
    [
        ([200], True, Sent),
        ([429, 204], True, Sent),  # the library itself repeats after 429, for Discord
        ([302, 200], True, Sent),
        ([200, 403], False, Unknown),  # one of two rooms, or the second part of a text
        ([200], False, Unknown),
        ([403], True, Unknown),
        ([408], False, Unknown),
        ([403, 429], False, Deferred),
        ([429, 403], False, Deferred),
        ([403], None, Unknown),
        ([], None, Deferred),
        ([], True, Unknown),
        ([], False, Unknown),
    ],
)
def test_the_table_of_outcomes(statuses: list[int], is_accepted: bool | None, expected: type) -> None:
    exchange = WatchedCall(allow_private=True)
    exchange.statuses += statuses
    assert isinstance(outcome_of("Discord", exchange, is_accepted), expected)


async def test_nothing_of_a_url_is_logged(provider: AppriseProvider, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    courier = await provider.open()
    for provider.status in (200, 403, 0):
        for room in (*SERVICES, "closed", "mail"):
            await send_one(courier, room, "a secret text")
    own = [record for record in caplog.records if not record.name.startswith(("aiohttp", "asyncio"))]
    logged = "\n".join(record.getMessage() for record in own)
    assert TOKEN not in logged
    assert "a secret text" not in logged
    assert not [record for record in own if record.name.startswith(("urllib3.connectionpool", "apprise"))]
    assert logging.getLogger("apprise").isEnabledFor(logging.WARNING)


@pytest.mark.parametrize(
    ("rooms", "said"),
    [
        (f"staff={TOKEN}", "entry 1 is not name=URL"),
        (f"staff=ntfy://ntfy.sh/a  ntfy://ntfy.sh/{TOKEN}", "entry 2 is not name=URL"),
        (f"staff=unheard://{TOKEN}", "the URL of staff is none of a service"),
        (f"staff=mmost://{TOKEN}", "the URL of staff is none of a service"),
        (f"staff=ntfy://ntfy.sh/a Staff=ntfy://ntfy.sh/{TOKEN}", "the room Staff is there twice"),
        (f"staff=ntfy://ntfy.sh/{TOKEN}?retry=2", "must not have retry"),
    ],
)
async def test_a_wrong_room_is_named_without_its_url(rooms: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=said) as refused:
        await apprise.open(apprise.Settings(rooms), tmp_path)
    assert TOKEN not in str(refused.value)
    assert TOKEN not in repr(apprise.Settings(rooms))


def test_a_url_is_no_contact_so_that_no_list_has_it() -> None:
    (fault,) = faults_of_contacts({"apprise": [f"ntfy://ntfy.sh/{TOKEN}"]}, ["apprise"])
    assert fault.code == "ADDRESS_MALFORMED"
    assert "ADA_APPRISE_ROOMS" in fault.detail
    assert TOKEN not in fault.detail
    assert list(faults_of_contacts({"apprise": ["staff", "кафедра-химии"]}, ["apprise"])) == []
