"""Notifications in Chromium: the page's button, the link, the service worker with what the courier has really sent, its
report, an answer by a button, and the page of a message. Only two things are played: the push service of the browser's
maker, which is on the internet, and the click on a notification, which the system shows.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.web_push.browser import Browser as SandboxBrowser
from sandbox.web_push.encryption import decrypt
from tests.delivery.conftest import Api
from tests.delivery.console.conftest import Person, axe_source
from tests.delivery.test_web_push import QUESTION, Stage, stage
from tests.support.browser import Chromium, running
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


class ForwardingBrowser(SandboxBrowser):
    """Keeps what the push service hands to it, for the worker in Chromium: it shows and reports nothing itself."""

    async def receive(self, body: bytes) -> None:
        self.shown.append(json.loads(decrypt(body, self.private, self.auth)))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """The whole Chromium: the one of the other tests shows no notifications."""
    yield from running(tmp_path_factory.mktemp("chromium"), "chromium")


async def test_a_person_switches_it_on_gets_a_message_and_answers(
    stage: Stage, api: Api, chromium: Chromium, axe_source: str
) -> None:
    async with chromium.tab() as browser:
        await browser.watch()
        person: Any = Person(browser, None, "")  # type: ignore[arg-type]
        await browser.allow_notifications(api.url)
        await browser.show(390, 800)
        await browser.open(api.url + stage.anna, "en")
        await browser.wait_for(f"document.body.innerText.includes({json.dumps(EN)})")
        assert await person.barriers(axe_source) == []
        assert await person.sideways() <= 0
        await browser.run(DEVICES)
        await person.keeps_picture("web-push-en-390")
        key = await browser.run("document.querySelector('[data-key]').dataset.key")
        made = stage.push.add_browser(key)
        own = ForwardingBrowser(made.id, made.endpoint, made.private, made.auth, key)
        stage.push.browsers[made.id] = own
        given = json.dumps(own.subscription)
        await browser.run(f"PushManager.prototype.subscribe = async () => ({given}); 1")
        await browser.run("document.querySelector('[data-key]').click()")
        await person.sees("A message with a link was sent to you")
        await person.keeps_picture("web-push-sent-en-390")
        (mail,) = await until(lambda: stage.mails.attempted)
        link = next(word for word in mail.text.split() if "/p/device/" in word)
        await browser.open(link, "en")
        assert await person.barriers(axe_source) == []
        await person.keeps_picture("web-push-link-en-390")
        await browser.run("document.querySelector('button').click()")
        await person.sees("Notifications are on")
        await stage.api.call("PATCH", "/v1/users/anna", {"locale": "ru"})
        await browser.show(1280, 800)
        await browser.open(api.url + stage.anna, "ru")
        await person.sees(RU)
        assert await person.barriers(axe_source) == []
        await browser.run(DEVICES)
        await person.keeps_picture("web-push-ru-1280")
        where = await stage.sends(answer=QUESTION)
        assert (await stage.outcome(where))["status"] == "sent"
        (payload,) = own.shown
        await browser.push(api.url, payload)

        async def is_delivered() -> bool:
            return bool((await stage.outcome(where))["status"] == "delivered")

        await until(is_delivered)
        registration = "(await navigator.serviceWorker.getRegistration('../push/'))"
        shown = f"(async () => (await {registration}.getNotifications()).map((one) => [one.title, one.body]))()"
        assert await browser.run(shown) == [["Ada", "Пары не будет"]]
        async with chromium.worker(f"{api.url}/push/worker.js") as run:
            await run(CLICK.format(action="1"))
            await until(lambda: stage_answered(stage, where))
            await browser.wait_for(f"{shown}.then(([[_, body] = []]) => body === '✓ Не приду')")
            await run(CLICK.format(action=""))
            assert await run("self.openedPage") == payload["page"]
            after = ForwardingBrowser("after", f"{stage.push.url}/push/after", made.private, made.auth)
            await run(RENEWAL.format(before=given, after=json.dumps(after.subscription)))
            (before,) = await stage.contacts()
            plain = {**payload, "page": "", "text": "Строка\nи ещё одна", "tag": "t2"}
            await browser.push(api.url, {name: value for name, value in plain.items() if value})
            await browser.wait_for(f"(async () => (await {registration}.getNotifications({{tag: 't2'}})).length)()")
            await browser.wait_for("(async () => Boolean(await caches.match('../push/renewal')))()")
            await run("self.dispatchEvent(new ExtendableEvent('pushsubscriptionchange'))")

            async def is_renewed() -> bool:
                found = await stage.contacts()
                return len(found) == 1 and found != [before]

            await until(is_renewed)
            await run(CLICK.format(action=""))
            opened = await run("self.openedPage")
        await browser.open(opened, "ru")
        await person.sees("и ещё одна")
        assert await browser.run("[...document.querySelectorAll('#actions a')].map((one) => one.textContent)") == [
            *("Приду", "Не приду")
        ]
        assert await person.barriers(axe_source) == []
        await browser.show(390, 800)
        await person.keeps_picture("web-push-message-ru-390")
        await browser.open("about:blank#", "ru")
        await browser.open(f"{api.url}/push/message#nothing", "ru")
        await person.sees("Этого сообщения здесь уже нет")
        assert await browser.faults() == []


async def stage_answered(stage: Stage, where: str) -> bool:
    return await stage.answered(where) == ("answered", "no", "link")
