"""The courier web-push against the sandbox's push service, which checks signatures and decrypts by the RFCs, with a
decryption of its own.
"""

import stat
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec import structs

from core.model.people import faults_of_contacts
from couriers.provider_calls import noting_calls
from couriers.sending import (
    Button,
    Content,
    Courier,
    Deferred,
    Message,
    Outcome,
    Reason,
    Rejected,
    Scope,
    Sent,
    SetupError,
    Subscription,
    Unknown,
)
from couriers.web_push import courier as web_push
from couriers.web_push.keys import FILE
from couriers.web_push.outcomes import outcome_of
from sandbox.web_push import PushServer
from sandbox.web_push.browser import Browser
from sandbox.web_push.encryption import decrypt
from tests.couriers.contract import Contract, Provider, message, running
from tests.support.waiting import until

PUBLIC_URL = "http://127.0.0.1:1"
CONTACT = "mailto:it@example.org"


class WithSubscriptions:
    """A courier whose messages have the subscriptions of their addresses, as the runtime gives them."""

    def __init__(self, courier: Any, subscriptions: dict[str, Subscription]) -> None:
        self._courier, self._subscriptions = courier, subscriptions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._courier, name)

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        given = [replace(one, subscription=self._subscriptions.get(one.address)) for one in messages]
        outcomes: Sequence[Outcome] = await self._courier.attempt(given)
        return outcomes


class PushProvider(Provider):
    """`browsers`: by the number of their address."""

    module = web_push

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.server = PushServer()
        self.browsers: dict[int, Browser] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.subscribe_key = ""

    async def start(self) -> None:
        await self.server.start()

    async def stop(self) -> None:
        await self.server.stop()

    def settings(self) -> web_push.Settings:
        return web_push.Settings(CONTACT, service=self.server.url, callback_url=PUBLIC_URL)

    async def open(self, **changes: Any) -> Courier:
        opened = await web_push.open(replace(self.settings(), **changes), self.directory)
        self.subscribe_key = opened.subscribe_key
        self.opened.append(opened)
        with_subscriptions: Any = WithSubscriptions(opened, self.subscriptions)
        courier: Courier = with_subscriptions
        return courier

    def address(self, number: int) -> str:
        if number not in self.browsers:
            self.browsers[number] = browser = self.server.add_browser(self.subscribe_key)
            self.subscriptions[subscription_of(browser).address] = subscription_of(browser)
        return subscription_of(self.browsers[number]).address

    def received(self, address: str) -> list[str]:
        found = [one for one in self.browsers.values() if subscription_of(one).address == address]
        return [shown["text"] for one in found for shown in one.shown]


def subscription_of(browser: Browser) -> Subscription:
    keys = browser.subscription["keys"]
    return Subscription(browser.endpoint, keys["p256dh"], keys["auth"])


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[PushProvider]:
    async with running(PushProvider(tmp_path)) as started:
        yield started


class TestWebPush(Contract):
    async def test_the_longest_text_is_received_unchanged(self, provider: Provider) -> None:
        """A push service takes 4,096 bytes: the beginning comes, and the history says that the end does not."""
        assert isinstance(provider, PushProvider)
        courier = await provider.open()
        for text in ("Я" * 4096, "😀" * 2000, '"' * 4096, "漢" * 4096):
            outcome = await push(courier, provider, text)
            assert outcome == Sent(not_shown=("text_end",))
            shown = provider.browsers[1].shown[-1]["text"]
            assert shown.endswith("...")
            assert text.startswith(shown[:-3])
        assert not provider.server.refused


async def push(courier: Courier, provider: PushProvider, text: str = "hello", **changes: Any) -> Any:
    return (await courier.attempt([replace(message(provider.address(1), text), **changes)]))[0]


async def test_the_answer_of_the_push_service_decides(provider: PushProvider) -> None:
    courier = await provider.open()
    statuses: list[int | str] = [201, 400, 403, 404, 410, 413, 307, 429, 500, 503]
    broken: list[int | str] = ["bad_gateway", "disconnect_before", "disconnect_after"]
    faults: list[tuple[int | str, int]] = [*((one, 0) for one in (*statuses, *broken)), (429, 7200), (503, 30)]
    found = {}
    with noting_calls() as calls:
        for fault in faults:
            provider.server.faults = [fault]
            found[fault] = await push(courier, provider)
    assert "refused at …" in [one.words for one in calls], "the service repeats the address"
    assert not any(provider.browsers[1].id in one.words for one in calls)
    wanted = {
        Sent: {(201, 0)},
        Rejected: {(status, 0) for status in (400, 403, 404, 410, 413, 307)},
        Deferred: {(429, 0), (429, 7200), (503, 30)},
        Unknown: {(500, 0), (503, 0), *((one, 0) for one in broken)},
    }
    for kind, those in wanted.items():
        assert {fault for fault, outcome in found.items() if isinstance(outcome, kind)} == those
    gone = [fault for fault, outcome in found.items() if isinstance(outcome, Rejected) and outcome.is_gone]
    assert gone == [(404, 0), (410, 0)]
    assert found[413, 0].reason is Reason.CONTENT_REFUSED
    assert found[429, 7200] == Deferred(Reason.THROTTLED, timedelta(hours=2), Scope.CHAT, "429")
    assert found[429, 0].is_guess
    assert found[503, 30].after == timedelta(seconds=30)
    assert not any(provider.browsers[1].endpoint in repr(outcome) for outcome in found.values())
    assert len(provider.browsers[1].shown) == 2, "nothing is repeated, and no redirect followed"


async def test_a_push_service_that_is_nowhere_delays_only_its_own_message(provider: PushProvider) -> None:
    """Everybody names its own: a wait of the account would let one person stop all."""
    courier = await provider.open()
    provider.address(1)
    await provider.stop()
    outcome = await push(courier, provider)
    assert isinstance(outcome, Deferred)
    assert (outcome.reason, outcome.scope, outcome.after) == (Reason.PROVIDER_DOWN, Scope.RECIPIENT, None)


async def test_an_answer_that_does_not_come_in_time_leaves_the_message_unknown(provider: PushProvider) -> None:
    courier = await provider.open(timeout=timedelta(milliseconds=300))
    provider.server.faults = [("timeout", 0)]
    assert isinstance(await push(courier, provider), Unknown)


@pytest.mark.parametrize(
    "endpoint",
    [
        *("https://127.0.0.1:{port}/push/x", "https://10.0.0.7/push", "https://169.254.169.254/latest"),
        *("https://localhost:{port}/push/x", "https://0x7f000001/x"),
    ],
)
async def test_a_private_address_is_not_called(provider: PushProvider, endpoint: str) -> None:
    """Without ADA_WEB_PUSH_SERVICE: whatever somebody has subscribed."""
    await provider.open(service="")
    given = subscription_of(provider.server.add_browser(""))
    given = structs.replace(given, endpoint=endpoint.format(port=provider.server.port))
    outcome = await push_to(provider, given)
    assert isinstance(outcome, Rejected)
    assert outcome.is_gone
    assert "not public" in outcome.detail
    assert provider.server.ttls == []


async def push_to(provider: PushProvider, given: Subscription | None) -> Any:
    """Send by the courier that was opened last, whatever the test's browsers are."""
    address = given.address if given else "A" * 22
    return (await provider.opened[-1].attempt([replace(message(address), subscription=given)]))[0]


async def test_only_https_and_only_the_service_of_the_setting_are_called(provider: PushProvider) -> None:
    given = subscription_of(provider.server.add_browser(""))
    for service, endpoint in (
        ("", given.endpoint),
        (provider.server.url, "https://push.example/x"),
        (provider.server.url, given.endpoint.replace("//", "//a:b@")),
    ):
        await provider.open(service=service)
        outcome = await push_to(provider, structs.replace(given, endpoint=endpoint))
        assert isinstance(outcome, Rejected)
        assert not outcome.is_gone, "a wrong setting must not remove what people have switched on"
    assert provider.server.ttls == []


async def test_a_subscription_that_is_none_or_was_removed_is_removed_with_its_contact(provider: PushProvider) -> None:
    await provider.open()
    given = subscription_of(provider.server.add_browser(provider.subscribe_key))
    for one in (None, structs.replace(given, p256dh="BAAA"), structs.replace(given, p256dh="B" + "A" * 86)):
        outcome = await push_to(provider, one)
        assert isinstance(outcome, Rejected)
        assert outcome.is_gone


async def test_the_notification_has_its_buttons_the_receipt_and_a_page(provider: PushProvider) -> None:
    courier, answer = await provider.open(), f"{PUBLIC_URL}/a/abc"
    rows = [[Button("Приду", url=f"{answer}?o=1")], [Button("Не приду", url=f"{answer}?o=2")]]
    rows.append([Button("Сайт", url="https://example.org")])
    settings, report = f"{PUBLIC_URL}/p/xyz", f"{PUBLIC_URL}/v1/receipts/web-push?token=t"
    content = Content(inline=rows)
    assert courier.as_text(content) == frozenset()  # type: ignore[attr-defined]
    changes: dict[str, Any] = {"content": content, "preferences_url": settings, "report_url": report}
    assert await push(courier, provider, **changes) == Sent()
    (shown,) = await until(lambda: provider.browsers[1].shown)
    assert shown["page"] == answer
    assert shown["settings"] == settings
    assert shown["receipt"] == report
    assert [(one["title"], one["answers"]) for one in shown["actions"]] == [
        *[("Приду", True), ("Не приду", True), ("Сайт", False)]
    ]
    many = Content(inline=[[Button("x" * 64, url=f"https://example.org/{'y' * 490}{n}")] for n in range(8)])
    outcome = await push(courier, provider, content=many)
    assert outcome == Sent(not_shown=("inline",))
    outcome = await push(courier, provider, "字" * 1000, content=Content(inline=many.inline[:2]))
    assert outcome == Sent(not_shown=("inline",)), "letters of three bytes leave room for one of the links"
    assert courier.as_text(Content(inline=[[Button("Да", "yes")]])) == {"inline"}  # type: ignore[attr-defined]


async def test_the_key_pair_is_made_once_and_another_one_is_named_by_the_setting(provider: PushProvider) -> None:
    await provider.open()
    first = provider.subscribe_key
    file = provider.directory / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(urlsafe_b64decode(first + "=")) == 65
    await provider.open()
    assert provider.subscribe_key == first
    written = file.read_text()
    file.unlink()
    await provider.open()
    assert provider.subscribe_key != first
    courier = await provider.open(key=written)
    assert provider.subscribe_key == first
    assert written not in repr(provider.settings())
    assert await push(courier, provider) == Sent()
    other = await provider.open(key="")
    refused = await push(other, provider)
    assert isinstance(refused, Rejected)
    assert not refused.is_gone
    assert "another key" in provider.server.refused[-1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"contact": "it@example.org"}, "ADA_WEB_PUSH_CONTACT"),
        ({"contact": "mailto:nobody"}, "ADA_WEB_PUSH_CONTACT"),
        ({"key": "nonsense"}, "ADA_WEB_PUSH_KEY"),
        ({"callback_url": None}, "ADA_PUBLIC_URL"),
        ({"service": "push.example"}, "ADA_WEB_PUSH_SERVICE"),
        ({"title": ""}, "ADA_WEB_PUSH_TITLE"),
    ],
)
async def test_a_wrong_setting_is_named(provider: PushProvider, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SetupError, match=said):
        await provider.open(**changes)


def test_an_endpoint_is_no_contact_so_that_no_list_has_it() -> None:
    (fault,) = faults_of_contacts({"web-push": ["https://push.example/secret"]}, ["web-push"])
    assert fault.code == "ADDRESS_MALFORMED"
    given = Subscription("https://push.example/secret", "p", "a")
    assert list(faults_of_contacts({"web-push": [given.address]}, ["web-push"])) == []
    assert "secret" not in given.address
    assert given.endpoint not in repr(replace(message(given.address), subscription=given))


def test_a_date_is_no_wait_in_seconds() -> None:
    assert outcome_of(429, None) == Deferred(Reason.THROTTLED, timedelta(minutes=1), Scope.CHAT, "429", is_guess=True)


def test_the_sandbox_decrypts_the_example_of_the_rfc() -> None:
    """RFC 8291, appendix A: so the sandbox is a counterpart, and no mirror of the courier."""
    number = int.from_bytes(urlsafe_b64decode("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94="), "big")
    body = (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3"
        "jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )
    plain = decrypt(
        urlsafe_b64decode(body + "=" * (-len(body) % 4)),
        ec.derive_private_key(number, ec.SECP256R1()),
        urlsafe_b64decode("BTBZMqHH6r4Tts7J_aSIgg=="),
    )
    assert plain == b"When I grow up, I want to be a watermelon"
