"""A webhook reaches no address inside the operator's network."""

import logging
import socket
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from core.errors import Conflict, Invalid, NotFound
from core.model.public_addresses import is_public
from core.webhooks.http_client import WebhookClient, host_of
from core.webhooks.registry import MOST_WEBHOOKS, Webhooks
from core.webhooks.webhook import EventType, Webhook, new_secret
from tests.core.webhooks.receiver import Receiver
from tests.support.servers import several_shards
from tests.support.stack import TENANT, Stack

__all__ = ["several_shards"]

FORBIDDEN = [
    "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "192.0.0.1", "198.18.0.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "::", "::1", "fe80::1",
    "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1",
    "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1", "2001:db8::1", "text", "",
    "fec0::1", "feff::7", "3fff::1", "3fff:fff::1", "4000::1", "5f00::1", "100::1", "64:ff9b:1::808:808",
    "2001:2::1", "2001:10::1",
]  # fmt: skip


@pytest.mark.parametrize("address", FORBIDDEN)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "2606:4700:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"]
)
def test_a_public_address_is_permitted(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ftp://example.org/",
            "file:///etc/passwd",
            "gopher://h/",
            "javascript:alert(1)",
            "//example.org",
            "hook",
            "",
        ),
        *("http://", "https:///path", "http://user:password@example.org/", "http://user@example.org/"),
        *("http://example.org:99999/", "http://exa mple.org/", "http://[::1/", "http://пример.рф/", "http://h/#part"),
        *("http://example.org\\@127.0.0.1/", "http://example.org/\nHost: x", "http://h/" + "a" * 2048),
    ],
)
def test_what_is_no_http_url_is_refused(url: str) -> None:
    with pytest.raises(Invalid) as refused:
        host_of(url)
    assert refused.value.code == "WEBHOOK_URL_MALFORMED"


def test_a_url_has_at_most_2048_characters() -> None:
    longest = "http://example.org/".ljust(2048, "a")
    assert host_of(longest) == ("example.org", 80)
    with pytest.raises(Invalid):
        host_of(longest + "a")


@pytest.fixture
async def guarded(stack: Stack) -> AsyncIterator[Webhooks]:
    """Webhooks as an installation has them without ADA_WEBHOOK_ALLOW_PRIVATE."""
    async with WebhookClient(time_limit=timedelta(seconds=2)) as client:
        yield Webhooks(stack.store, stack.queue, client)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0"]
)
async def test_a_private_address_is_refused_at_registration(guarded: Webhooks, host: str) -> None:
    with pytest.raises(Invalid) as refused:
        await guarded.create(TENANT, f"http://{host}:8080/", [EventType.FINISHED])
    assert refused.value.code in ("WEBHOOK_TARGET_FORBIDDEN", "WEBHOOK_HOST_UNKNOWN")
    assert await guarded.of_tenant(TENANT) == []


async def test_a_host_without_an_address_is_refused(guarded: Webhooks) -> None:
    with pytest.raises(Invalid) as refused:
        await guarded.create(TENANT, "https://nowhere.invalid/", [EventType.FINISHED])
    assert refused.value.code == "WEBHOOK_HOST_UNKNOWN"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
async def test_a_private_address_is_refused_at_the_connection(guarded: Webhooks, receiver: Receiver, host: str) -> None:
    """As of a webhook that was created while private addresses were permitted."""
    webhook = Webhook("wh_1", TENANT, f"http://{host}:{receiver.port}/", (EventType.FINISHED,), 0, new_secret())
    await guarded._save(webhook, 1)
    attempt = await guarded.test(TENANT, webhook.id)
    assert (attempt.status, attempt.error) == (None, "target_forbidden")
    assert receiver.calls == []


async def test_a_name_that_later_has_a_private_address_is_refused(
    guarded: Webhooks, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: the name has a public address while the webhook is created."""
    answers = {"rebound.example.org": "93.184.216.34"}
    resolve: Callable[..., Any] = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **more: Any) -> Any:
        return resolve(answers.get(host, host), *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    url = f"http://rebound.example.org:{receiver.port}/"
    webhook = await guarded.create(TENANT, url, [EventType.FINISHED])
    answers["rebound.example.org"] = "127.0.0.1"
    attempt = await guarded.test(TENANT, webhook.id)
    assert (attempt.status, attempt.error) == (None, "target_forbidden")
    assert receiver.calls == []


async def test_a_tenant_has_a_limited_number_of_webhooks_and_no_other_sees_them(stack: Stack) -> None:
    async with WebhookClient(allow_private=True) as client:
        webhooks = Webhooks(stack.store, stack.queue, client)
        made = [
            await webhooks.create(TENANT, f"http://127.0.0.1:9/{number}", [EventType.FINISHED])
            for number in range(MOST_WEBHOOKS - 1)
        ]
        with pytest.raises(Conflict, match=made[3].id) as refused:
            await webhooks.create(TENANT, "http://127.0.0.1:9/3", [EventType.JOB, EventType.FINISHED])
        assert refused.value.code == "WEBHOOK_EXISTS"
        await webhooks.create(TENANT, "http://127.0.0.1:9/3", [EventType.JOB])
        with pytest.raises(Conflict) as refused:
            await webhooks.create(TENANT, "http://127.0.0.1:9/", [EventType.FINISHED])
        assert refused.value.code == "TOO_MANY_WEBHOOKS"
        await webhooks.create("another", "http://127.0.0.1:9/", [EventType.FINISHED])
        assert len(await webhooks.of_tenant("another")) == 1
        for call in (webhooks.find, webhooks.delete, webhooks.test, webhooks.state, webhooks.replay):
            with pytest.raises(NotFound):
                await call("another", made[0].id)


async def test_the_secret_is_in_no_log_and_no_repr(
    stack: Stack, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    async with WebhookClient(allow_private=True) as client:
        webhooks = Webhooks(stack.store, stack.queue, client)
        with caplog.at_level(logging.DEBUG):
            webhook = await webhooks.create(TENANT, receiver.url(), [EventType.FINISHED])
            await receiver.stop()
            await webhooks.test(TENANT, webhook.id)
    assert webhook.secret not in caplog.text + repr(webhook)
