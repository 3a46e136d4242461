"""Notifications from end to end: switched on at the recipient's page, sent by the real courier to the sandbox's push
service, reported and answered by its browser; and what strangers, other tenants and repeats get.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from core.deliveries.channels import ChannelFacts
from core.errors import Conflict
from core.model.contacts.subscription import Subscription
from core.model.content import Display
from core.model.people import MAX_ADDRESSES, User, UserChange
from couriers.sending.runtime import Runtime
from couriers.web_push import courier as web_push
from sandbox.web_push import PushServer
from sandbox.web_push.browser import AGENT, Browser, new_browser, renew, subscribe
from tests.delivery.conftest import Api, ApiResponse, Couriers, delivery_body, read
from tests.delivery.test_deliveries import finished
from tests.support.stack import QUICK, FakeCourier
from tests.support.waiting import until

ANNA, BORIS = "anna@example.org", "boris@example.org"
QUESTION = {
    "kind": "choice",
    "options": [{"key": "yes", "text": "Приду"}, {"key": "no", "text": "Не приду"}],
}


@dataclass
class Stage:
    """`anna`, `boris`: the links to their pages, in mails; `mails`: what they get."""

    api: Api
    push: PushServer
    mails: FakeCourier
    anna: str
    boris: str

    async def asks(self, link: str = "") -> Browser:
        """A browser that has subscribed at a page and waits for the person."""
        browser = await subscribe(self.push.url, self.api.url + (link or self.anna))
        self.push.browsers[browser.id] = browser
        return browser

    async def confirms(self, known: int, address: str = ANNA) -> str:
        """The person presses the button behind the link of its newest mail. `known`: how many mails it had before."""

        def mailed() -> list[str]:
            return [one.text for one in self.mails.attempted if one.address == address][known:]

        (text,) = await until(mailed)
        link = str(re.findall(r"http://\S+/p/device/\S+", text)[0])
        async with self.api.session.get(link) as asked:
            assert "Firefox, Linux?" in await asked.text()
        async with self.api.session.post(link) as done:
            assert "Notifications are on" in await done.text()
        return link

    async def switches_on(self) -> Browser:
        known = len(self.mails.attempted)
        browser = await self.asks()
        await self.confirms(known)
        return browser

    async def contacts(self, person: str = "anna") -> list[str]:
        found = (await self.api.call("GET", f"/v1/users/{person}")).json["contacts"]
        return list(found.get("web-push", []))

    async def sends(self, **more: Any) -> str:
        """The address of a delivery to Anna's devices."""
        body = delivery_body(recipients=[{"id": "anna"}], channels=["web-push"], **more)
        return str((await self.api.call("POST", "/v1/deliveries", body)).headers["Location"])

    async def outcome(self, where: str) -> dict[str, Any]:
        history = await finished(self.api, where)
        found: dict[str, Any] = history["recipients"][0]["outcomes"]["web-push"]
        return found

    async def answered(self, where: str) -> tuple[str, str | None, str | None]:
        """State, option and way of Anna's answer."""
        (row,) = (await self.api.call("GET", where)).json["recipients"]
        return row["answer"]["state"], row["answer"]["value"], row["answer"]["by"]

    async def posts(self, path: str, body: object = None, **headers: str) -> ApiResponse:
        """What somebody without a key posts."""
        async with ClientSession() as session:
            async with session.post(self.api.url + path, json=body, headers=headers) as response:
                return await read(response)


@pytest.fixture
async def stage(api: Api, courier: Couriers, tmp_path: Path) -> AsyncIterator[Stage]:
    push = PushServer()
    await push.start()
    settings = web_push.Settings("mailto:it@example.org", service=push.url, callback_url=api.url)
    options = replace(QUICK, answer_url=f"{api.url}/a/", preferences_url=f"{api.url}/p/")
    options = replace(options, report_url=f"{api.url}/v1/receipts/web-push")
    runtime = Runtime(api.store, "web-push", options)
    await runtime.add(await web_push.open(settings, tmp_path))
    running = asyncio.create_task(runtime.run())
    for person, address in (("anna", ANNA), ("boris", BORIS)):
        user = User(person, f"{person.title()} Petrova", contacts={"email": [address]}, locale="en")
        await api.services.core.directory.users.create("default", user)
    token = api.services.core.preferences.token
    links = [f"/p/{await token('default', 'email', address)}" for address in (ANNA, BORIS)]
    yield Stage(api, push, await courier("email"), *links)
    runtime.stop()
    await running
    await push.stop()


async def test_it_is_switched_on_shown_reported_answered_and_switched_off_at_the_page(stage: Stage) -> None:
    browser = await stage.switches_on()
    (address,) = await stage.contacts()
    where = await stage.sends(answer=QUESTION)
    await until(lambda: browser.reports)
    (shown,) = browser.shown
    assert (shown["title"], shown["text"]) == ("Ada", "Пары не будет")
    assert [one["title"] for one in shown["actions"]] == ["Приду", "Не приду"]
    assert (await stage.outcome(where))["status"] == "delivered"
    assert await browser.press(0, 1) == 200
    assert await stage.answered(where) == ("answered", "no", "link")
    page = (await read(await stage.api.session.get(stage.api.url + stage.anna))).body.decode()
    assert page.count("Firefox, Linux") == 2
    assert browser.endpoint not in page
    assert address not in re.sub(r'value="[^"]+"', "", page), "a list shows the device, not its address"
    async with stage.api.session.post(stage.api.url + stage.anna, data={"device": address}) as removed:
        assert "gets no notifications any more" in await removed.text()
    assert await stage.contacts() == []
    assert not stage.push.refused


async def test_sent_is_all_that_a_push_service_says(stage: Stage) -> None:
    browser = await stage.switches_on()
    stage.push.faults = [(202, 0)]
    where = await stage.sends()
    assert (await stage.outcome(where))["status"] == "sent"
    assert browser.reports == []


async def test_a_browser_that_has_unsubscribed_is_no_contact_any_more(stage: Stage) -> None:
    """404 is the same outcome (tests/couriers/test_web_push.py)."""
    await stage.switches_on()
    stage.push.faults = [(410, 0)]
    outcome = await stage.outcome(await stage.sends())
    assert (outcome["status"], outcome["reason"]) == ("failed", "recipient_unreachable")
    await until_removed(stage)
    assert (await stage.outcome(await stage.sends()))["status"] == "no_contact"


async def until_removed(stage: Stage) -> None:
    async def is_removed() -> bool:
        key = stage.api.store.tenant_key("subscriptions", "default")
        return not await stage.contacts() and not await stage.api.store.command("HLEN", key)

    await until(is_removed)


async def test_a_subscription_goes_with_its_contact_and_its_person(stage: Stage) -> None:
    api, key = stage.api, stage.api.store.tenant_key("subscriptions", "default")

    async def kept() -> int:
        return int(await api.store.command("HLEN", key))

    for number in range(3):
        await stage.switches_on()
        assert await kept() == number + 1
    first, second, *_ = await stage.contacts()
    await api.call("DELETE", f"/v1/contacts/anna/web-push/{first}")
    assert await kept() == 2
    changed = await api.call("PATCH", "/v1/users/anna", {"contacts": {"web-push": [second]}})
    assert changed.status == 200, changed
    assert (await kept(), await stage.contacts()) == (1, [second])
    await api.services.core.directory.users.merge("default", "boris", "anna")
    assert (await kept(), await stage.contacts("boris")) == (1, [second]), "it goes on with the person that stays"
    await api.call("DELETE", "/v1/users/boris")
    assert await kept() == 0


async def test_a_browser_belongs_to_who_has_switched_it_on_last(stage: Stage) -> None:
    browser = await stage.switches_on()
    again = await stage.posts(f"{stage.anna}/devices", browser.subscription, **{"User-Agent": AGENT})
    assert (again.status, again.json) == (201, {"device": "Firefox, Linux"}), "nobody is asked twice"
    agent = {"User-Agent": AGENT}
    assert (await stage.posts(f"{stage.boris}/devices", browser.subscription, **agent)).status == 202
    assert (len(await stage.contacts()), await stage.contacts("boris")) == (1, []), "it waits for Boris"
    await stage.confirms(0, BORIS)
    assert (await stage.contacts(), len(await stage.contacts("boris"))) == ([], 1)


async def test_whoever_got_a_mail_forwarded_gets_no_message_of_its_recipient(stage: Stage) -> None:
    """A new browser waits for a link that goes to the person itself; the link is used once."""
    stranger = await stage.asks()
    where = await stage.sends()
    assert (await stage.outcome(where))["status"] == "no_contact"
    assert await stage.contacts() == []
    link = await stage.confirms(0)
    for method in ("GET", "POST"):
        async with stage.api.session.request(method, link, headers={"Accept-Language": "en"}) as used:
            assert (used.status, "was used or has expired" in await used.text()) == (403, True)
    async with stage.api.session.get(f"{stage.api.url}/p/device/0.nonsense") as wrong:
        assert wrong.status == 403
    assert len(await stage.contacts()) == 1
    assert stranger.shown == []
    new = new_browser(stage.push.url)
    codes = [(await stage.posts(f"{stage.anna}/devices", new.subscription)).status for _ in range(4)]
    assert codes == [202, 202, 429, 429], "a person gets at most three such mails at once"
    await stage.api.call("PATCH", "/v1/users/boris", {"blocked": True})
    refused = await stage.posts(f"{stage.boris}/devices", new.subscription)
    assert refused.code == "NOTIFICATIONS_NOT_OFFERED"


async def test_a_link_stays_while_its_browser_cannot_be_added_and_nothing_of_it_is_kept(stage: Stage) -> None:
    core = stage.api.services.core
    await stage.asks()
    (text,) = await until(lambda: [one.text for one in stage.mails.attempted])
    secret = str(re.findall(r"/p/device/(\S+)", text)[0])
    full = {"web-push": [f"{number:022}" for number in range(MAX_ADDRESSES)], "email": [ANNA]}
    await core.directory.users.update("default", "anna", UserChange(contacts=full))
    with pytest.raises(Conflict, match="at most"):
        await core.device_links.use(secret)
    address = (await core.device_links.open(secret)).subscription.address
    assert await core.subscriptions.find("default", "web-push", [address]) == [None]
    await core.directory.users.update("default", "anna", UserChange(contacts={"email": [ANNA]}))
    await core.device_links.use(secret)
    assert await stage.contacts() == [address]


async def test_a_browser_that_gets_another_subscription_stays_a_device_of_its_person(stage: Stage) -> None:
    """Who only has the link of its notification, because that was forwarded, renews nothing."""
    browser = await stage.switches_on()
    await stage.sends()
    await until(lambda: browser.reports)
    before = await stage.contacts()
    page = browser.shown[-1]["settings"].removeprefix(stage.api.url)
    stranger = new_browser(stage.push.url)
    guessed = {**browser.subscription, "keys": stranger.subscription["keys"]}
    tried = await stage.posts(f"{page}/devices", {**stranger.subscription, "replaces": guessed})
    assert tried.status == 202, "the person is asked"
    by_mail = {**stranger.subscription, "replaces": browser.subscription}
    assert (await stage.posts(f"{stage.anna}/devices", by_mail)).status == 202, "not the link of the browser"
    assert await stage.contacts() == before
    shown, renewed = len(browser.shown), await renew(browser, stage.push.url)
    stage.push.browsers[renewed.id] = renewed
    (address,) = await stage.contacts()
    assert address not in before
    assert (await stage.outcome(await stage.sends()))["status"] in ("sent", "delivered")
    assert (len(renewed.shown), len(browser.shown)) == (1, shown)


async def test_strangers_and_malformed_subscriptions_are_refused(stage: Stage) -> None:
    browser = await stage.switches_on()
    given, path = browser.subscription, f"{stage.anna}/devices"
    key = given["keys"]
    tenant = await stage.api.services.core.preferences.token("other", "email", ANNA)
    for link, code in (("/p/nonsense", "PREFERENCES_TOKEN_WRONG"), (f"/p/{tenant}", "PREFERENCES_UNKNOWN")):
        assert (await stage.posts(f"{link}/devices", given)).code == code
    for wrong, code in (
        ({**given, "endpoint": "https://push.example/x"}, "SUBSCRIPTION_MALFORMED"),
        ({**given, "endpoint": "http://169.254.169.254/x"}, "SUBSCRIPTION_MALFORMED"),
        ({**given, "keys": {**key, "p256dh": "B" + "A" * 86}}, "SUBSCRIPTION_MALFORMED"),
        ({**given, "keys": {**key, "auth": "AAAA"}}, "SUBSCRIPTION_MALFORMED"),
        ({**given, "keys": {**key, "auth": "я"}}, "WRONG_FORMAT"),
        ({**given, "endpoint": given["endpoint"] + "x" * 2000}, "TOO_LONG"),
        ({"endpoint": given["endpoint"]}, "REQUIRED"),
        ({**given, "more": "x" * 5000}, "BODY_TOO_LARGE"),
    ):
        refused = await stage.posts(path, wrong)
        assert refused.code == code, (wrong, refused)
    assert (await stage.posts(path, given, **{"Content-Type": "text/plain"})).code == "CONTENT_TYPE_UNSUPPORTED"
    assert len(await stage.contacts()) == 1
    another = (await stage.contacts())[0]
    async with stage.api.session.post(stage.api.url + stage.boris, data={"device": another}) as answer:
        assert answer.status == 200
    assert len(await stage.contacts()) == 1, "nobody removes the device of another person"
    for token in ("x", "a.b"):
        assert (await stage.posts(f"/v1/receipts/web-push?token={token}")).code == "RECEIPT_SECRET_WRONG"
    assert (await stage.posts("/v1/receipts/web-push")).code == "REQUIRED"
    codes = [(await stage.posts(path, {})).status for _ in range(40)]
    assert 429 in codes


async def test_a_report_may_be_repeated_and_a_posted_link_answers_only_its_option(stage: Stage) -> None:
    browser = await stage.switches_on()
    where = await stage.sends(answer=QUESTION)
    await until(lambda: browser.reports)
    (shown,) = browser.shown
    receipt, link = (shown[name].removeprefix(stage.api.url) for name in ("receipt", "page"))
    assert (await stage.posts(receipt)).json == {"changed": False}
    for number in ("0", "3", "x", "-1", "99999999999999999999"):
        assert (await stage.posts(f"{link}?o={number}")).status != 200
    assert await stage.answered(where) == ("open", None, None)
    async with stage.api.session.get(f"{shown['page']}?o=1") as opened:
        assert opened.status == 200
    assert await stage.answered(where) == ("open", None, None), "opening it answers nothing"


async def test_without_a_courier_the_page_offers_nothing_and_refuses(api: Api) -> None:
    await api.services.core.directory.users.create("default", User("anna", contacts={"email": [ANNA]}))
    path = f"/p/{await api.services.core.preferences.token('default', 'email', ANNA)}"
    async with api.session.get(api.url + path) as page:
        assert "data-key" not in await page.text()
        assert "script-src 'none'" in page.headers["Content-Security-Policy"]
    display = Display(subscribe_key="BA", push_service="")
    await api.services.core.channels.register("web-push", ChannelFacts(100), display=display)
    async with api.session.get(api.url + path) as page:
        text, policy = await page.text(), page.headers["Content-Security-Policy"]
        assert 'data-key="BA"' in text
        assert policy.split("script-src ")[1].split(";")[0].count("'sha256-") == 1
        assert "unsafe" not in policy
        assert policy.endswith("worker-src 'self'")


async def test_a_subscription_is_in_no_answer_of_the_api(stage: Stage) -> None:
    browser = await stage.switches_on()
    where = await stage.sends()
    await stage.outcome(where)
    secrets = [browser.endpoint.rpartition("/")[2], browser.subscription["keys"]["p256dh"]]
    for path in ("/v1/users/anna", "/v1/users", where, f"{where}/recipients", f"{where}/exchanges", "/v1/export/users"):
        text = (await stage.api.call("GET", path)).body.decode()
        assert not any(one in text for one in secrets), path
    given = Subscription("https://push.example/1", "p", "a")
    assert len(given.address) == 22
