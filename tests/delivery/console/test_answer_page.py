"""The pages behind the links of a mail, in Chromium: on a phone, in both languages, without scripts."""

import re

import pytest
from aiohttp import ClientSession

from tests.delivery.console.conftest import Person, Running
from tests.support.waiting import until

TEXTS = {
    "ru": ("Придёте на собрание в четверг в 18:00?", "Приду", "Не приду", "Ответ записан: Приду", "Изменить ответ"),
    "en": ("Will you come on Thursday at 18:00?", "I come", "I do not", "Your answer: I come", "Change the answer"),
}
PERSON = {"ru": ("page-ru@example.org", "Мария Петрова"), "en": ("page-en@example.org", "Maria Petrova")}


async def newest_link(running: Running, address: str, form: str = r"http://\S+/a/\w+\?o=1") -> str:
    """The first link of the newest mail to an address."""

    async def found() -> str:
        query = {"channel": "email", "address": address}
        async with ClientSession() as session:
            async with session.get(f"{running.sandbox.rstrip('/')}/inbox.json", params=query) as response:
                messages = (await response.json())["messages"]
        links = [link for one in messages for link in re.findall(form, one["text"])]
        return links[-1] if links else ""

    return str(await until(found, every=0.1))


@pytest.mark.parametrize("language", ["ru", "en"])
async def test_a_person_answers_on_a_phone_and_changes_the_answer(
    person: Person, axe_source: str, language: str
) -> None:
    text, yes, no, written, change = TEXTS[language]
    address, name = PERSON[language]
    options = [{"key": "yes", "text": yes}, {"key": "no", "text": no}]
    body = {
        "sender": {"id": "dean"},
        "text": text,
        "channels": ["email"],
        "recipients": [{"id": 1, "name": name, "contacts": {"email": address}}],
        "answer": {"kind": "choice", "options": options, "until": "2030-01-01T10:00:00Z"},
    }
    made = await person.running.call("POST", "/v1/deliveries", body)
    await person.browser.show(390, 800)
    await person.browser.open(await newest_link(person.running, address), language)
    await person.browser.wait_for("document.querySelector('form') !== null")
    assert await person.browser.run("document.querySelector(':checked').value") == "yes"
    assert await person.barriers(axe_source) == []
    assert await person.sideways() <= 0
    await person.keeps_picture(f"answer-page-{language}-390")
    await person.browser.run("document.querySelector('button').click()")
    await person.sees(written)
    await person.sees(change)
    assert await person.barriers(axe_source) == []
    await person.keeps_picture(f"answer-page-answered-{language}-390")
    await person.browser.show(1280, 800)
    await person.keeps_picture(f"answer-page-answered-{language}-1280")
    history = await person.running.call("GET", f"/v1/deliveries/{made['id']}")
    assert [one["answer"]["by"] for one in history["recipients"]] == ["link"]


@pytest.mark.parametrize("language", ["ru", "en"])
async def test_a_recipient_leaves_on_a_phone_and_comes_back(person: Person, axe_source: str, language: str) -> None:
    """The link is that of a mail; the page is also looked at on a desk."""
    words = {
        "ru": ("Не присылать мне ничего", "Вы отписаны", "Сохранено"),
        "en": ("Send me nothing", "You are unsubscribed", "Saved"),
    }
    leave, left, saved = words[language]
    address = f"leaves-{language}@example.org"
    contacts = {"email": [address], "sms": ["+7916123450" + str(len(language) + (language == "en"))]}
    user = {"id": f"leaves-{language}", "name": "Мария Петрова", "locale": language, "contacts": contacts}
    await person.running.call("POST", "/v1/users", user)
    body = {"sender": {"id": "dean"}, "text": "Hello", "channels": ["email"], "recipients": [{"id": user["id"]}]}
    await person.running.call("POST", "/v1/deliveries", body)
    await person.browser.show(390, 800)
    await person.browser.open(await newest_link(person.running, address, r"http://\S+/p/[\w-]+"), language)
    await person.browser.wait_for("document.querySelectorAll('[name=channel]:checked').length === 2")
    assert await person.barriers(axe_source) == []
    assert await person.sideways() <= 0
    await person.keeps_picture(f"preferences-{language}-390")
    await person.browser.run("document.querySelector('button.plain').click()")
    await person.sees(left)
    assert leave not in await person.browser.run("document.body.innerText")
    assert await person.barriers(axe_source) == []
    await person.browser.show(1280, 800)
    await person.keeps_picture(f"preferences-left-{language}-1280")
    assert (await person.running.call("GET", f"/v1/users/{user['id']}"))["opt_out"] == ["email", "sms"]
    await person.browser.run(
        "document.querySelector('[name=channel][value=email]').click(); document.querySelector('button').click()"
    )
    await person.sees(saved)
    assert (await person.running.call("GET", f"/v1/users/{user['id']}"))["opt_out"] == ["sms"]
