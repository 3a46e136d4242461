"""What stands around every page: signing in, language, colours, keyboard, the states, the connection."""

import os
import signal

import pytest

from tests.delivery.console.conftest import Person, Running
from tests.support.browser import Chromium


async def test_an_operator_signs_in_with_an_api_key_returns_to_the_page_and_signs_out(person: Person) -> None:
    await person.visit_signed_out("account")
    await person.sees("Mail me a code")
    await person.presses("With an API key")
    await person.writes("API key", "ada_wrong")
    await person.presses("Sign in")
    await person.sees("This API key is unknown or revoked.")
    await person.writes("API key", person.running.key)
    await person.presses("Sign in")
    await person.sees("Signed in as")
    await person.presses("Sign out")
    await person.sees("Mail me a code")
    await person.go("account")
    await person.sees("Mail me a code")


async def test_the_language_is_that_of_the_browser_until_another_is_chosen(person: Person) -> None:
    await person.visit("account", language="ru-RU")
    await person.sees("Вы вошли как")
    assert await person.browser.run("document.documentElement.lang") == "ru"
    await person.chooses("Язык", "en")
    await person.sees("Signed in as")
    await person.visit("account", language="ru-RU")
    await person.sees("Signed in as")


async def test_the_colours_follow_the_system_until_others_are_chosen(person: Person) -> None:
    await person.visit(theme="dark")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    dark = await person.browser.run(ground)
    await person.chooses("Colours", "light")
    light = await person.browser.run(ground)
    assert dark != light
    await person.visit(theme="dark")
    assert await person.browser.run(ground) == light, "the choice is remembered"


async def test_a_person_without_a_mouse_reaches_the_content_and_a_page_of_the_menu(person: Person) -> None:
    await person.visit()
    await person.browser.run("document.activeElement.blur()")
    await person.browser.press("Tab")
    assert await person.browser.run("document.activeElement.innerText") == "Skip to content"
    await person.browser.press("Enter")
    assert await person.browser.run("document.activeElement.id") == "content"
    await person.browser.run("document.querySelector('#menu .me').focus()")
    await person.browser.press("Enter")
    await person.sees("Signed in as")
    assert await person.browser.run("document.activeElement.tagName") == "H1", "a screen reader announces the page"


async def test_the_menu_of_a_phone_opens_and_closes_with_the_keyboard(person: Person) -> None:
    await person.visit(width=390)
    await person.sees_no("Colours")
    await person.presses("Menu")
    await person.sees("Colours")
    await person.browser.press("Escape")
    await person.sees_no("Colours")
    assert await person.browser.run("document.activeElement.innerText") == "Menu"


async def test_an_unknown_page_says_so_and_leads_on(person: Person) -> None:
    await person.visit("nowhere")
    await person.sees("There is no such page")
    await person.presses("Go to the first page")
    await person.sees("Hello")
    await person.go("sign_in")  # as the other pages are named
    await person.sees("Sign in")
    await person.sees_no("There is no such page")


@pytest.mark.parametrize(
    ("part", "ends", "goes_on", "text"),
    [
        ("serve", signal.SIGKILL, None, "Ada does not respond."),
        ("valkey-server", signal.SIGSTOP, signal.SIGCONT, "Ada takes longer than usual to respond."),
    ],
)
async def test_the_page_says_what_is_away_and_recovers_by_itself(
    person: Person, part: str, ends: signal.Signals, goes_on: signal.Signals | None, text: str
) -> None:
    """A killed API is started again by `./ada up`."""
    await person.visit("account")
    module = "document.querySelector('script[src]').src.replace('main.js', 'lib/api.js')"
    await person.browser.run(f"import({module}).then((one) => {{ window.api = one.api; }})")
    process = person.running.installation.child(part)
    os.kill(process, ends)
    try:
        await person.browser.run("window.api.get('/v1/me').then((me) => { window.answer = me }), 1")
        await person.sees(text)
    finally:
        if goes_on:
            os.kill(process, goes_on)
    await person.browser.wait_for("Boolean(window.answer)")
    await person.sees_no(text)
    await person.sees("Signed in as")


VALID_UNTIL = (
    "[23, 24].map((minutes) => new Intl.DateTimeFormat('ru', { hour: '2-digit', minute: '2-digit' })"
    ".format(Date.now() + minutes * 60000))"
)
"""The lifetime of a code, which the mail names, as a moment; up to a minute has passed."""


async def test_a_teacher_signs_in_with_a_mailed_code_and_sees_no_more_than_the_own_rights(person: Person) -> None:
    body = {"id": 601, "name": "Мария Сергеевна", "email": "maria@example.org", "role": "trainer"}
    await person.running.call("POST", "/v1/users", body)
    await person.visit_signed_out(language="ru", width=390)
    await person.writes("Электронная почта", "maria@example.org")
    await person.presses("Прислать код")
    await person.sees("на него отправлен код")
    await person.browser.wait_for(f"{VALID_UNTIL}.some((time) => document.body.innerText.includes('до ' + time))")
    await person.writes("Код", await person.mailed_code("maria@example.org"))
    await person.presses("Войти")
    await person.sees("Здравствуйте, Мария Сергеевна")
    await person.keeps_picture("home-of-a-teacher-ru-light-390")
    await person.go("account")
    await person.sees("писать сообщения, читать сообщения")
    await person.go("write")
    await person.sees("У вас ещё нет своих групп.")


async def test_the_tests_notice_errors_in_the_console_and_violations_of_the_policy(
    chromium: Chromium, running: Running
) -> None:
    async with chromium.tab() as browser:
        await browser.watch()
        await browser.open(running.url, "en")
        assert await browser.faults() == []
        await browser.run("document.body.setAttribute('style', 'color: red')")
        assert "Content Security Policy" in " ".join(await browser.faults())
        await browser.run("console.error('it broke')")
        assert "it broke" in await browser.faults()


async def test_an_element_that_is_changed_in_place_does_what_its_new_version_does(person: Person) -> None:
    await person.visit()
    pressed = await person.browser.run(
        "import(new URL('lib/dom.js', document.querySelector('script[type=module]').src)).then(({h, paint}) => {"
        " const place = h('div'), pressed = [];"
        " for (const name of ['old', 'new']) paint(place, h('button', {onclick: () => pressed.push(name)}, name));"
        " const button = place.firstChild; button.click();"
        " paint(place, h('button', {}, 'idle')); button.click();"
        " return [pressed, button === place.firstChild]; })"
    )
    assert pressed == [["new"], True]


async def test_a_style_that_is_changed_in_place_is_not_blocked_by_the_policy_of_the_page(person: Person) -> None:
    """The fixture finds what the policy has blocked."""
    await person.visit()
    shown = await person.browser.run(
        "import(new URL('lib/dom.js', document.querySelector('script[type=module]').src)).then(({h, paint}) => {"
        " const place = h('div'), shown = [];"
        " for (const style of [{'--share': 0.1}, {'--share': 0.9}, {}]) {"
        "   paint(place, h('span', {style})); shown.push(place.firstChild.style.getPropertyValue('--share')); }"
        " return shown; })"
    )
    assert shown == ["0.1", "0.9", ""]
