"""An administrator makes and revokes API keys, manages webhooks and reads who changed what."""

from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from core.admission.api_keys import ApiKeys
from core.directory import Directory
from core.redis.store import Store
from core.sessions import Sessions
from tests.delivery.console.conftest import Person
from tests.delivery.console.test_writing import send
from tests.support.waiting import until

OVER_PLAIN_HTTP = "Object.defineProperty(navigator, 'clipboard', {value: undefined}); 1"
NOTES_COPIES = "document.addEventListener('copy', () => { window.copied = document.activeElement.value }); 1"
FOLLOWS_FILE = """fetch((() => { const link = document.querySelector('a[download]');
    link.addEventListener('click', (event) => event.preventDefault()); link.click(); return link.href })())
    .then((file) => file.text())"""


async def status_with(person: Person, secret: str) -> int:
    headers = {"Authorization": f"Bearer {secret}"}
    async with (
        ClientSession() as session,
        session.get(person.running.url + "/v1/deliveries", headers=headers) as response,
    ):
        return response.status


async def test_a_new_api_key_is_shown_once_copied_without_https_and_revoked(person: Person) -> None:
    await person.visit("keys")
    await person.presses("Create a key")
    await person.writes("Name", "robot")
    await person.confirms()
    await person.sees("Choose at least one right.")
    await person.presses("read – read messages and outcomes")
    await person.confirms()
    await person.sees("It is shown only this time.")
    secret = await person.browser.run("document.querySelector('dialog[open] input').value")
    await person.browser.run(OVER_PLAIN_HTTP)
    await person.browser.run(NOTES_COPIES)
    await person.presses("Copy")
    await person.sees("Copied")
    assert await person.browser.run("window.copied") == secret
    await person.presses("Done")
    await person.sees("robot")
    await person.keeps_picture("keys")
    assert secret not in await person.browser.run("document.documentElement.outerHTML")
    assert await status_with(person, secret) == 200
    await person.browser.run("document.querySelector('button[aria-label=\"Revoke “robot”\"]').click()")
    await person.sees("This cannot be undone.")
    await person.confirms()
    await person.sees("“robot” is revoked")
    assert await status_with(person, secret) == 401


async def is_turned_off(person: Person) -> bool:
    (webhook,) = (await person.running.call("GET", "/v1/webhooks"))["webhooks"]
    return webhook["disabled_at"] is not None


async def test_a_webhook_is_added_tested_turned_on_again_and_deleted(person: Person) -> None:
    answer = 202

    async def accept(request: web.Request) -> web.Response:
        return web.Response(status=answer)

    receiver = web.Application()
    receiver.router.add_post("/hook", accept)
    async with TestServer(receiver) as server:
        await person.visit("webhooks")
        await person.sees("There are no webhooks")
        await person.presses("Add a webhook")
        await person.writes("Address", str(server.make_url("/hook")))
        await person.confirms()
        await person.sees("Secret for checking signatures")
        await person.presses("Done")
        await person.presses("Test")
        await person.sees("Test: accepted (202)")
        await person.sees("Last attempts: 1")
        await person.presses("Last attempts: 1")
        await person.keeps_picture("webhooks")
        answer = 410
        await send(person, "The receiver is gone")
        await until(lambda: is_turned_off(person))
        await person.go("account")
        await person.go("webhooks")
        await person.sees("Nothing is sent to it until you turn it on again")
        answer = 202
        await person.presses("Turn on again")
        await person.confirms()
        await person.sees_no("Nothing is sent to it")
        await person.presses("Delete")
        await person.confirms()
        await person.sees("There are no webhooks")


async def test_the_action_log_says_who_changed_what_and_is_a_file(person: Person) -> None:
    await person.running.call("POST", "/v1/groups", {"id": "swimmers", "title": "Swimmers"})
    await person.running.call("POST", "/v1/users", {"id": 90210, "name": "Nina"})
    await person.visit("actions")
    await person.sees("POST /v1/groups")
    await person.sees("Group: added")
    await person.writes("What, from", "POST /v1/users")
    await person.sees_no("POST /v1/groups")
    await person.sees("POST /v1/users")
    await person.keeps_picture("actions")
    lines = (await person.browser.run(FOLLOWS_FILE)).splitlines()
    assert lines[0] == "at,who,name,via,what,target,count,why,filter"
    assert lines[1:]
    assert all("POST /v1/users" in line for line in lines[1:])


async def test_a_person_makes_a_key_for_a_program_of_its_own_and_revokes_it(person: Person, store: Store) -> None:
    await person.running.call("POST", "/v1/users", {"id": 646, "name": "Вера Ильина", "role": "trainer"})
    sessions = Sessions(store, Directory(store), ApiKeys(store))
    session = await sessions.begin_as_person("default", 646)
    teacher = Person(person.browser, person.running, session.secret)
    await teacher.visit("account", language="ru", width=390)
    await teacher.sees("Ключей нет")
    await teacher.presses("Создать ключ")
    await teacher.writes("Название", "marks.py")
    await teacher.presses("read – читать сообщения и результаты")
    await teacher.confirms()
    await teacher.sees("Ключ «marks.py» готов")
    secret = await teacher.browser.run("document.querySelector('dialog[open] input').value")
    await teacher.presses("Готово")
    await teacher.sees("marks.py")
    assert await teacher.sideways() <= 0
    await teacher.keeps_picture("account-keys-390")
    assert await status_with(teacher, secret) == 200
    await teacher.browser.run("document.querySelector('button[aria-label=\"Отозвать «marks.py»\"]').click()")
    await teacher.confirms()
    await teacher.sees("«marks.py» отозван")
    assert await status_with(teacher, secret) == 401
