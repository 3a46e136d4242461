"""Notifications in Chromium: the page's button, the link, the service worker with what the courier has really sent, its
report, an answer by a button, and the page of a message. Only two things are played: the push service of the browser's
maker, which is on the internet, and the click on a notification, which the system shows.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from sandbox.web_push.browser import Browser as SandboxBrowser
from sandbox.web_push.encryption import decrypt
from tests.delivery.console.conftest import Person, axe_source
from tests.delivery.test_web_push import QUESTION, Stage, stage
from tests.support.browser import Browser, Chromium, running
from tests.support.waiting import until

__all__ = ["axe_source", "stage"]

RU, EN = "Включить уведомления на этом устройстве", "Switch on notifications on this device"
DEVICES = "document.getElementById('devices').scrollIntoView()"
CLICK = """(async () => {{
  self.clients.openWindow = (url) => {{ self.openedPage = new URL(url, location).href; }};
  const [notification] = await registration.getNotifications();
  self.dispatchEvent(new NotificationEvent("notificationclick", {{ notification, action: "{action}" }}));
}})()"""


RENEWAL = """(() => {{
  const options = {{ applicationServerKey: new Uint8Array([4]).buffer }};
  registration.pushManager.getSubscription = async () => ({{ options, toJSON: () => ({before}) }});
  registration.pushManager.subscribe = async () => ({{ toJSON: () => ({after}) }});
}})()"""


REGISTRATION = "(await navigator.serviceWorker.getRegistration('../push/'))"
SHOWN = f"(async () => (await {REGISTRATION}.getNotifications()).map((one) => [one.title, one.body]))()"
Run = Callable[[str], Awaitable[Any]]


class ForwardingBrowser(SandboxBrowser):
    """Keeps what the push service hands to it, for the worker in Chromium: it shows and reports nothing itself."""

    async def receive(self, body: bytes) -> None:
        self.shown.append(json.loads(decrypt(body, self.private, self.auth)))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """The whole Chromium: the one of the other tests shows no notifications."""
    yield from running(tmp_path_factory.mktemp("chromium"), "chromium")


@dataclass
class Device:
    """A browser of Anna: its pages, its worker, and what the push service hands to it."""

    stage: Stage
    chromium: Chromium
    browser: Browser
    axe_source: str
    received: ForwardingBrowser = field(init=False)

    @property
    def person(self) -> Person:
        return Person(self.browser, None, "")  # type: ignore[arg-type]

    @property
    def url(self) -> str:
        return self.stage.api.url

    async def is_without_barriers(self) -> None:
        assert await self.person.barriers(self.axe_source) == []

    async def switches_on(self) -> None:
        """Press the button of the page, and open the link that was sent."""
        await self.browser.open(self.url + self.stage.anna, "en")
        await self.browser.wait_for(f"document.body.innerText.includes({json.dumps(EN)})")
        await self.is_without_barriers()
        assert await self.person.sideways() <= 0
        await self.browser.run(DEVICES)
        await self.person.keeps_picture("web-push-en-390")
        key = await self.browser.run("document.querySelector('[data-key]').dataset.key")
        made = self.stage.push.add_browser(key)
        self.received = ForwardingBrowser(made.id, made.endpoint, made.private, made.auth, key)
        self.stage.push.browsers[made.id] = self.received
        given = json.dumps(self.received.subscription)
        await self.browser.run(f"PushManager.prototype.subscribe = async () => ({given}); 1")
        await self.browser.run("document.querySelector('[data-key]').click()")
        await self.person.sees("A message with a link was sent to you")
        await self.person.keeps_picture("web-push-sent-en-390")
        (mail,) = await until(lambda: self.stage.mails.attempted)
        await self.browser.open(next(word for word in mail.text.split() if "/p/device/" in word), "en")
        await self.is_without_barriers()
        await self.person.keeps_picture("web-push-link-en-390")
        await self.browser.run("document.querySelector('button').click()")
        await self.person.sees("Notifications are on")

    async def is_in_russian(self) -> None:
        await self.stage.api.call("PATCH", "/v1/users/anna", {"locale": "ru"})
        await self.browser.show(1280, 800)
        await self.browser.open(self.url + self.stage.anna, "ru")
        await self.person.sees(RU)
        await self.is_without_barriers()
        await self.browser.run(DEVICES)
        await self.person.keeps_picture("web-push-ru-1280")

    async def shows_a_message(self) -> tuple[str, Mapping[str, str]]:
        """Return the address of the delivery, and what the push service was given."""
        where = await self.stage.sends(answer=QUESTION)
        assert (await self.stage.outcome(where))["status"] == "sent"
        (payload,) = self.received.shown

        async def is_delivered() -> bool:
            return bool((await self.stage.outcome(where))["status"] == "delivered")

        await self.pushed(payload, is_delivered)
        assert await self.browser.run(SHOWN) == [["Ada", "Пары не будет"]]
        return where, payload

    async def pushed(self, payload: Mapping[str, str], is_seen: Callable[[], Awaitable[bool]]) -> None:
        """Push a message until the worker has taken it, as a push service does: a busy machine may lose one."""
        for _ in range(2):
            await self.browser.push(self.url, payload)
            with suppress(AssertionError):
                await until(is_seen, within=20)
                return
        await self.browser.push(self.url, payload)
        await until(is_seen)

    async def answers_by_a_button(self, worker: Run, where: str, payload: Mapping[str, str]) -> None:
        await worker(CLICK.format(action="1"))
        await until(lambda: self.has_answered(where))
        await self.browser.wait_for(f"{SHOWN}.then(([[_, body] = []]) => body === '✓ Не приду')")
        await worker(CLICK.format(action=""))
        assert await worker("self.openedPage") == payload["page"]

    async def has_answered(self, where: str) -> bool:
        return await self.stage.answered(where) == ("answered", "no", "link")

    async def gets_another_subscription(self, worker: Run, payload: Mapping[str, str]) -> str:
        """Return the page of a message that has none of its own."""
        mine = self.received
        after = ForwardingBrowser("after", f"{self.stage.push.url}/push/after", mine.private, mine.auth)
        renewal = {"before": json.dumps(mine.subscription), "after": json.dumps(after.subscription)}
        await worker(RENEWAL.format(**renewal))
        (before,) = await self.stage.contacts()
        plain = {**payload, "text": "Строка\nи ещё одна", "tag": "t2"}
        shown = f"(async () => Boolean((await {REGISTRATION}.getNotifications({{tag: 't2'}})).length))()"
        await self.pushed({name: plain[name] for name in plain if name != "page"}, lambda: self.browser.run(shown))
        await self.browser.wait_for("(async () => Boolean(await caches.match('../push/renewal')))()")
        await worker("self.dispatchEvent(new ExtendableEvent('pushsubscriptionchange'))")

        async def is_renewed() -> bool:
            found = await self.stage.contacts()
            return len(found) == 1 and found != [before]

        await until(is_renewed)
        await worker(CLICK.format(action=""))
        return str(await worker("self.openedPage"))

    async def opens(self, page: str) -> None:
        await self.browser.open(page, "ru")
        await self.person.sees("и ещё одна")
        buttons = "[...document.querySelectorAll('#actions a')].map((one) => one.textContent)"
        assert await self.browser.run(buttons) == ["Приду", "Не приду"]
        await self.is_without_barriers()
        await self.browser.show(390, 800)
        await self.person.keeps_picture("web-push-message-ru-390")
        await self.browser.open("about:blank#", "ru")
        await self.browser.open(f"{self.url}/push/message#nothing", "ru")
        await self.person.sees("Этого сообщения здесь уже нет")


async def test_a_person_switches_it_on_gets_a_message_and_answers(
    stage: Stage, chromium: Chromium, axe_source: str
) -> None:
    async with chromium.tab() as browser:
        await browser.watch()
        await browser.allow_notifications(stage.api.url)
        await browser.show(390, 800)
        device = Device(stage, chromium, browser, axe_source)
        await device.switches_on()
        await device.is_in_russian()
        where, payload = await device.shows_a_message()
        async with chromium.worker(f"{stage.api.url}/push/worker.js") as worker:
            await device.answers_by_a_button(worker, where, payload)
            page = await device.gets_another_subscription(worker, payload)
        await device.opens(page)
        assert await browser.faults() == []
