"""What goes wrong while somebody writes: the session ends, the API restarts, the message is too large. Nothing is lost,
and nothing is sent twice.
"""

import os
import signal
import uuid

from aiohttp import ClientError

from core.admission.api_keys import ApiKeys
from core.directory import Directory
from core.redis.store import Store
from core.sessions import Sessions
from tests.delivery.console.conftest import Person
from tests.delivery.console.test_writing import school
from tests.support.waiting import until

LOSES_THE_ANSWER_TO_THE_NEXT_POST = """(() => { const real = window.fetch; window.fetch = async (url, request) => {
    const answer = await real(url, request);
    if (request.method !== "POST") return answer;
    window.fetch = real; throw new TypeError("lost") } })()"""
ROWS = "document.querySelectorAll('.rows .row').length"
POSTS = """fetch("/v1/deliveries/preview", {method: "POST", headers: {"Content-Type": "application/json"}, body: """
REFUSED_NUMBER = "+70000000013"


async def write(person: Person, text: str) -> None:
    """Writes a message to a group of three, of which one is reached."""
    group = await school(person)
    await person.visit("write", language="ru")
    await person.writes("Найти группу", group)
    await person.presses(group)
    await person.writes("Текст", text)
    await person.sees("3 получателя")


async def sent_with(person: Person, text: str) -> list[str]:
    found = (await person.running.call("GET", f"/v1/deliveries?text={text}"))["deliveries"]
    return [one["id"] for one in found]


async def test_a_session_that_ends_is_said_and_the_draft_is_there_after_the_next_one(
    person: Person, store: Store
) -> None:
    sessions = Sessions(store, Directory(store), ApiKeys(store))
    own = await sessions.begin_with_key(person.running.key)
    await write(Person(person.browser, person.running, own.secret), "Завтра в десять")
    await sessions.end(own.identity)
    await person.presses("Проверить")
    await person.sees("Сеанс закончился. Войдите снова")
    await person.presses("С ключом API")
    await person.writes("Ключ API", person.running.key)
    await person.presses("Войти")
    await person.sees("3 получателя")
    assert await person.browser.run("document.querySelector('#text').value") == "Завтра в десять"
    assert await person.browser.run("location.hash") == "#/write"


async def test_a_message_is_sent_once_although_the_api_is_killed_and_an_answer_is_lost(person: Person) -> None:
    text = f"Один раз {uuid.uuid4().hex}"
    await write(person, text)
    await person.presses("Проверить")
    await person.sees("Отправить 1 человеку")
    api = person.running.installation.child("serve")
    os.kill(api, signal.SIGSTOP)
    await person.presses("Отправить 1 человеку")
    os.kill(api, signal.SIGKILL)
    await person.sees("Не отправлено или не подтверждено. Нажмите ещё раз: дважды не уйдёт.")

    async def is_back() -> bool:
        try:
            return await sent_with(person, text) == []
        except (ClientError, AssertionError):
            return False

    await until(is_back, within=60)
    await person.browser.run(LOSES_THE_ANSWER_TO_THE_NEXT_POST)
    await person.presses("Отправить 1 человеку")
    await person.sees("Не отправлено или не подтверждено. Нажмите ещё раз: дважды не уйдёт.")
    (sent,) = await until(lambda: sent_with(person, text))
    await person.presses("Отправить 1 человеку")
    await person.sees("Получили")
    assert await person.browser.run("location.hash") == f"#/message/{sent}"
    assert await sent_with(person, text) == [sent]


async def test_a_message_that_is_too_large_is_refused_in_a_sentence_and_kept(person: Person) -> None:
    """Five megabytes get a response. In the form an id is too large: Chromium would need long to show such a text."""
    await write(person, "Длинно")
    large = "JSON.stringify({text: 'a'.repeat(4_900_000)})"
    refused = await person.browser.run(f"{POSTS}{large}}}).then((one) => one.json())")
    assert (refused["status"], refused["code"]) == (413, "BODY_TOO_LARGE")
    file = "{id: 'a'.repeat(1_100_000), name: 'план.pdf', type: 'document', bytes: 1}"
    enlarge = f"const draft = JSON.parse(localStorage.getItem('ada.draft')); draft.uploads = [{file}]"
    await person.browser.run(f"{{ {enlarge}; localStorage.setItem('ada.draft', JSON.stringify(draft)); }}")
    await person.visit("write", language="ru")
    await person.sees("Сообщение слишком большое. Сократите текст")
    await person.sees("план.pdf")
    assert await person.browser.run("document.querySelector('#text').value") == "Длинно"


async def test_who_was_not_reached_is_tried_again_and_everybody_is_printed(person: Person) -> None:
    numbers = [f"+7999{n:07d}" for n in range(2_000_000, 2_000_149)]
    people = [{"id": n, "name": f"Person {n}", "contacts": {"sms": one}} for n, one in enumerate(numbers)]
    refused = {"id": "refused", "name": "Refused", "contacts": {"sms": REFUSED_NUMBER}}
    body = {"sender": {"id": 1}, "text": "To all", "recipients": [refused, *people], "channels": ["sms"]}
    made = await person.running.call("POST", "/v1/deliveries", body)
    await person.visit(f"message/{made['id']}")
    await person.sees("Reached 149 of 150")

    async def failed_at() -> list[str]:
        page = await person.running.call("GET", f"/v1/deliveries/{made['id']}/recipients?status=failed")
        return [one["outcomes"]["sms"]["at"] for one in page["recipients"]]

    async def tried_after(before: list[str]) -> bool:
        return len(now := await failed_at()) == 1 and now > before

    before = await failed_at()
    await person.presses("Try the failed again")
    await person.confirms()
    await person.sees("1 attempt follows")

    await until(lambda: tried_after(before), within=60)
    await person.browser.run(
        "window.print = () => { window.printed = document.querySelectorAll('.rows .row').length }, 1"
    )

    async def printed() -> bool:
        await person.presses("Print")  # the button moves while outcomes come in
        return bool(await person.browser.run("window.printed === 150"))

    await until(printed, within=60, every=0.5)
    await person.browser.run("document.documentElement.dataset.theme = 'dark'")
    await person.browser.show_as_printed()
    for hidden in ("header", ".filters", ".actions"):
        assert await person.browser.run(f"getComputedStyle(document.querySelector('{hidden}')).display") == "none"
    boxes = "[...document.querySelectorAll('.rows .row')].map((row) => [...row.children].find((one) => one.innerText)"
    assert await person.browser.run(f"Math.min(...{boxes}.offsetWidth))") > 120, "a name stands in its own column"
    assert await person.browser.run("getComputedStyle(document.documentElement).colorScheme") == "light"
    assert "Person 148" in await person.browser.text("#content")
    await person.keeps_picture("message-printed")


async def test_a_message_is_saved_as_a_template_used_again_and_deleted(person: Person) -> None:
    await write(person, "Собрание в **10**")
    await person.presses("Шаблоны")
    await person.presses("Сохранить как шаблон")
    await person.writes("Название шаблона", "Собрание")
    await person.confirms()
    await person.sees("Собрание")
    await person.presses("Очистить всё")
    await person.browser.wait_for("document.querySelector('#text').value === ''")
    await person.presses("Собрание")
    await person.browser.wait_for("document.querySelector('#text').value === 'Собрание в **10**'")
    await person.browser.run("document.querySelector('[aria-label=\"Удалить шаблон «Собрание»\"]').click()")
    await person.confirms()
    await person.browser.wait_for("!document.querySelector('.plain-list li')")
    assert (await person.running.call("GET", "/v1/templates"))["templates"] == []
