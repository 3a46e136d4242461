"""A person signs in with the link of the bot; its session is good for its rights and this server."""

import json
from urllib.parse import urlsplit

from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from core.admission.api_keys import ApiKeys
from core.directory import Directory
from core.redis.store import Store
from core.sessions import Sessions
from tests.delivery.console.conftest import Person
from tests.support.waiting import until

TELEGRAM = 600_602
RESUMES = "fetch(%s, {method: 'POST', credentials: 'include', mode: 'no-cors'}).then(() => 'sent')"
PAUSES = "fetch('/v1/queue/tubes/sms:pause', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: \
'{\"reason\": \"mine\"}'}).then((response) => response.json())"
CHANGING = "[...document.querySelectorAll('#content button:not([aria-expanded], [aria-label^=\"Show the rate of\"])')]\
.map((one) => one.innerText)"
"""The buttons that do more than show."""


async def link_of_the_bot(person: Person) -> str:
    """The link that the bot sends to who writes /console."""
    sandbox = person.running.sandbox.rstrip("/")
    async with ClientSession() as session:

        async def sent() -> list[str]:
            query = {"channel": "telegram-bot", "address": str(TELEGRAM)}
            async with session.get(f"{sandbox}/inbox.json", params=query) as response:
                texts = [one["text"] for one in (await response.json())["messages"]]
            return [word for text in texts for word in text.split() if "#/sign-in/" in word]

        async with session.post(
            f"{sandbox}/write/telegram-bot", json={"address": TELEGRAM, "text": "/console"}
        ) as response:
            assert response.status == 200, await response.text()
        return (await until(sent, within=60, every=0.1))[-1]


async def test_the_link_of_the_bot_signs_in_once_and_a_deleted_person_loses_the_session(
    person: Person, store: Store
) -> None:
    teacher = {"id": 602, "name": "Олег Иванович", "role": "trainer", "contacts": {"telegram-bot": str(TELEGRAM)}}
    await person.running.call("POST", "/v1/users", teacher)
    link = await link_of_the_bot(person)
    assert link.startswith(person.running.url)
    for _ in range(2):  # a preview of the link opens it, too
        await person.browser.open("about:blank#", "ru")
        await person.browser.open(link, "ru")
        await person.sees("Войти")
    await person.presses("Войти")
    await person.sees("Здравствуйте, Олег Иванович")
    (cookie,) = await person.browser.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["secure"]) == (True, "Strict", False)
    assert await person.browser.run("document.cookie") == ""
    await person.go("account")
    sessions = Sessions(store, Directory(store), ApiKeys(store))
    elsewhere = await sessions.begin_as_person("default", 602)
    await person.presses("Выйти на всех устройствах")
    await person.confirms()
    await person.sees("Прислать код")
    assert await person.browser.cookies() == []
    await person.go(f"sign-in/{urlsplit(link).fragment.rpartition('/')[2]}")
    await person.presses("Войти")
    await person.sees("Ссылка уже использована")
    await person.browser.set_cookie(person.running.url, "ada_session", elsewhere.secret)
    await person.visit_signed_out("account", language="ru")
    await person.sees("Прислать код")
    again = await sessions.begin_as_person("default", 602)
    await person.browser.set_cookie(person.running.url, "ada_session", again.secret)
    await person.visit_signed_out("account", language="ru")
    await person.sees("Олег Иванович")
    await person.running.call("DELETE", "/v1/users/602")
    await person.go("messages")
    await person.sees("Сеанс закончился. Войдите снова")


async def test_a_page_of_another_server_changes_nothing_with_the_session(person: Person) -> None:
    """It stands on the same host, so the browser sends the cookie, although it is strict."""

    async def trap(_: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><link rel=icon href=data:,>", content_type="text/html")

    async def is_paused() -> bool:
        tubes = (await person.running.call("GET", "/v1/queue/tubes"))["tubes"]
        return any(one["name"] == "sms" and one["paused"] for one in tubes)

    await person.running.call("POST", "/v1/queue/tubes/sms:pause", {"reason": "a test"})
    resumes = RESUMES % json.dumps(person.running.url + "/v1/queue/tubes/sms:resume")
    site = web.Application()
    site.router.add_get("/", trap)
    async with TestServer(site) as server:
        await person.visit("account")
        await person.browser.open(str(server.make_url("/")), "en")
        assert await person.browser.run(resumes) == "sent"
        assert await is_paused()
    await person.visit("account")
    assert await person.browser.run(resumes) == "sent"
    assert not await is_paused()


async def test_a_key_that_may_only_look_sees_no_button_and_is_refused(person: Person, store: Store) -> None:
    api_keys = ApiKeys(store)
    _, secret = await api_keys.create("watcher", ["inspect"])
    session = await Sessions(store, Directory(store), api_keys).begin_with_key(secret)
    watcher = Person(person.browser, person.running, session.secret)
    await watcher.visit("tubes")
    await watcher.browser.wait_for("Boolean(document.querySelector('#content [aria-expanded=false]'))")
    await watcher.browser.run("document.querySelector('#content [aria-expanded=false]').click()")
    await watcher.browser.wait_for("document.querySelector('.rows')?.textContent.includes('telegram-bot')")
    assert await watcher.browser.run(CHANGING) == []
    assert (await watcher.browser.run(PAUSES))["code"] == "SCOPE_MISSING"
    await watcher.go("audit")
    await watcher.sees_no("Start an audit")
    await watcher.go("write")
    await watcher.sees("You may not see this")
