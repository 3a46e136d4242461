"""What one notice becomes: its recipient, channels and text; and what webhooks get."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace as changed

from core.deliveries.channels import ChannelFacts
from core.errors import Refused
from core.jobs.notices import Notice, NoticeEvent
from core.model.delivery import Recipient, Repeat, Strategy
from core.model.people import User
from core.orders import Caller, Order
from core.queue import Attempt
from core.services import Services
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import TUBE, EventType
from jobs.notices import KIND, Notifier
from providers.sign_in import Service, SignIn, Tokens, Vault
from providers.sign_in.stored import new_key
from tests.support.stack import TENANT, Stack

HOUR_MS = 3_600_000
LIMIT = NoticeEvent.LIMIT_REACHED
SERVICES = {"vacancies": Service("https://a.example", "https://t.example", "ada")}
FAILED = Notice(NoticeEvent.FAILED, TENANT, "hunt", "1", 3, 1_000, "the service is closed")
SIGN_IN = Notice(NoticeEvent.SIGN_IN_NEEDED, TENANT, "hunt", "1", 3, 1_000, "sign in again", service="vacancies")


@dataclass
class Sendings:
    """In place of `core.orders.Sending`: keeps what is sent, or refuses it."""

    refusal: Refused | None = None
    sent: list[tuple[Order, Caller, Repeat]] = field(default_factory=list)

    async def send(self, order: Order, caller: Caller, repeat: Repeat) -> None:
        if self.refusal:
            raise self.refusal
        self.sent.append((order, caller, repeat))


@dataclass(frozen=True)
class NoticeTask:
    """The part of an attempt that the notifier reads."""

    body: str


class Desk:
    """A notifier on a store with the channels `echo` and `sms`."""

    def __init__(self, stack: Stack) -> None:
        vault = Vault([new_key()])
        self.sendings = Sendings()
        self.core = replace(Services.on(stack.store), sending=self.sendings)  # type: ignore[arg-type]  # a part of it
        self.sign_in = SignIn(stack.store, vault, Tokens(stack.store, vault, SERVICES), SERVICES, "https://ada.example")
        self.notifier = Notifier(self.core, self.sign_in)

    async def handle(self, notice: Notice) -> list[tuple[Order, Caller, Repeat]]:
        """Return what this notice has sent."""
        self.sendings.sent.clear()
        task: Attempt = NoticeTask(notice.encode())  # type: ignore[assignment]  # a part of it
        assert await self.notifier.handle(task) is None
        return list(self.sendings.sent)

    async def text(self, notice: Notice) -> str:
        ((order, _, _),) = await self.handle(notice)
        return order.delivery.text

    async def create(self, contacts: Mapping[str, list[str]], **more: object) -> None:
        await self.core.directory.users.create(TENANT, User(1, "Anna", locale="en", contacts=contacts, **more))  # type: ignore[arg-type]


@pytest.fixture
async def desk(stack: Stack) -> Desk:
    desk = Desk(stack)
    for channel in ("echo", "sms"):
        await desk.core.channels.register(channel, ChannelFacts(100))
    return desk


async def test_a_notice_is_one_delivery_to_the_first_channel_that_reaches_the_person(desk: Desk) -> None:
    await desk.create({"sms": ["+79991112233"], "echo": ["anna"]})
    ((order, caller, _),) = await desk.handle(FAILED)
    contacts = {"sms": ["+79991112233"], "echo": ["anna"]}
    assert list(order.addressees) == [Recipient(1, "Anna", contacts=contacts)]
    delivery = order.delivery
    assert (list(delivery.channels), delivery.strategy) == (["sms", "echo"], Strategy.FIRST)
    assert (delivery.kind, delivery.origin, delivery.tenant) == (KIND, "jobs", TENANT)
    assert delivery.text == "Your job hunt has failed and does not go on: the service is closed"
    assert delivery.expires_at
    assert timedelta(hours=23) < delivery.expires_at - datetime.now(UTC) < timedelta(hours=25)
    assert caller == Caller(TENANT, is_admin=True)


@pytest.mark.parametrize(
    ("contacts", "opt_out", "channels"),
    [
        ({"echo": ["anna"], "sms": ["+79991112233"]}, ["echo"], ["sms"]),
        ({"echo": ["anna"], "fax": ["1"]}, [], ["echo"]),
        ({"fax": ["1"]}, [], []),
        ({"echo": ["anna"]}, ["echo"], []),
        ({}, [], []),
    ],
)
async def test_a_notice_takes_the_channels_that_run_and_that_the_person_wants(
    desk: Desk, contacts: Mapping[str, list[str]], opt_out: list[str], channels: list[str]
) -> None:
    await desk.create(contacts, opt_out=opt_out)
    sent = await desk.handle(FAILED)
    assert [list(order.delivery.channels) for order, _, _ in sent] == ([channels] if channels else [])


@pytest.mark.parametrize(
    ("user", "contacts"), [("echo:100001", {"echo": ["100001"]}), ("fax:1", None), ("echo:", None), ("7", None)]
)
async def test_a_user_that_the_directory_does_not_know_is_reached_at_the_address_in_its_name(
    desk: Desk, user: str, contacts: Mapping[str, list[str]] | None
) -> None:
    sent = await desk.handle(changed(FAILED, user=user))
    assert [list(order.addressees) for order, _, _ in sent] == (
        [[Recipient("100001", contacts=contacts)]] if contacts else []
    )
    assert all(order.delivery.text.startswith("Ваше задание hunt") for order, _, _ in sent)


async def test_an_address_is_only_in_the_notice_of_a_sign_in_to_a_known_service(desk: Desk) -> None:
    await desk.create({"echo": ["anna"]})
    address = "\nSign in here, within a day: https://ada.example/v1/sign-in/link/"
    text = await desk.text(SIGN_IN)
    assert address in text
    assert (await desk.sign_in.find(text.rpartition("/")[2])).person == "Anna"
    assert address not in await desk.text(changed(SIGN_IN, service=""))
    assert address not in await desk.text(changed(SIGN_IN, service="unknown"))
    assert address not in await desk.text(changed(SIGN_IN, event=NoticeEvent.WAITS_FOR_USER))
    desk.notifier = Notifier(desk.core)
    assert address not in await desk.text(SIGN_IN)


@pytest.mark.parametrize(("pause", "is_sent"), [(HOUR_MS, False), (HOUR_MS + 1, True)])
async def test_a_limit_that_ends_within_an_hour_is_not_sent(desk: Desk, pause: int, is_sent: bool) -> None:
    await desk.create({"echo": ["anna"]})
    notice = changed(FAILED, event=LIMIT, resumes_at=FAILED.at + pause)
    assert bool(await desk.handle(notice)) is is_sent


async def test_a_limit_without_an_end_is_sent(desk: Desk) -> None:
    await desk.create({"echo": ["anna"]})
    assert (await desk.text(changed(FAILED, event=LIMIT))).startswith("Your job hunt is paused until –: ")


async def test_notices_with_one_key_are_the_same_change_or_the_same_limit_of_a_day(desk: Desk) -> None:
    await desk.create({"echo": ["anna"]})
    await desk.core.directory.users.create("another", User(1, "Boris", contacts={"echo": ["boris"]}))

    async def key(**changes: Any) -> str:
        ((_, _, repeat),) = await desk.handle(changed(FAILED, **changes))
        return repeat.key

    limit: dict[str, Any] = {"event": LIMIT, "resumes_at": 0, "timezone": "Europe/Moscow"}
    others: list[dict[str, Any]] = [
        {"version": 4},
        {"tenant": "another"},
        {"kind": "digest"},
        limit,
        {**limit, "reason": "busy"},
    ]
    others.append({**limit, "at": 21 * HOUR_MS})  # midnight in Moscow
    keys = [await key(), *[await key(**one) for one in others]]
    assert len(set(keys)) == len(keys)
    assert await key(reason="in other words", at=86_400_000) == keys[0]
    assert await key(**{**limit, "version": 9, "at": 21 * HOUR_MS - 1}) == keys[4]


async def test_a_message_that_is_refused_is_one_line_in_the_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    await desk.create({"echo": ["anna"]})
    desk.sendings.refusal = Refused("TOO_MANY", "Too many.")
    assert await desk.handle(FAILED) == []
    assert caplog.messages == ["job hunt.1: its user was not notified that it is failed: TOO_MANY"]


async def test_a_webhook_gets_the_facts_of_a_notice(desk: Desk, stack: Stack) -> None:
    await desk.core.directory.users.create(TENANT, User(1, "Anna"))
    webhooks = Webhooks(stack.store, stack.queue, WebhookClient(allow_private=True))
    await webhooks.create(TENANT, "http://127.0.0.1:9/", [EventType.JOB])
    for notice in (changed(SIGN_IN, event=LIMIT, resumes_at=1_500), FAILED):
        await desk.handle(notice)
    data = [json.loads(body)["data"] for body in await stack.finish_all(TUBE)]
    common = {"job": "hunt.1", "kind": "hunt", "user": "1", "version": 3}
    resumes = {"resumes_at": "1970-01-01T00:00:01.500000Z", "service": "vacancies"}
    assert data == [
        {**common, "event": "limit_reached", "reason": "sign in again", **resumes},
        {**common, "event": "failed", "reason": "the service is closed"},
    ]
