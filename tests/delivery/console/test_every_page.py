"""Every page of the menu, in both languages, both themes, on a wide screen and on a phone."""

import re
from pathlib import Path

import pytest

from tests.delivery.console.conftest import Person
from tests.support.waiting import stays

MENU = Path("delivery/console/static/lib/page.js")
LOOKS = [
    ("en", "light", 1280),
    ("ru", "dark", 390),
    pytest.param("en", "dark", 390, marks=pytest.mark.long),
    pytest.param("ru", "light", 390, marks=pytest.mark.long),
    pytest.param("ru", "dark", 1280, marks=pytest.mark.long),
]
"""Each language, theme and width; the long form tries every pair of them."""


def pages() -> list[str]:
    """The pages that stand in the menu or need nothing in their address."""
    return [name for name, more in entries() if "list:" not in more]


def entries() -> list[tuple[str, str]]:
    return re.findall(r'\{ name: "([a-z_-]+)"(.*)\}', MENU.read_text())


async def test_the_page_of_one_thing_leads_to_the_list_without_an_id(person: Person) -> None:
    lists = {name: found[1] for name, more in entries() if (found := re.search('list: "([a-z_]+)"', more))}
    assert len(lists) == 6
    await person.visit("home")
    for page, leads_to in lists.items():
        await person.browser.run(f"location.hash = '#/{page}'")
        await person.browser.wait_for(f"location.hash === '#/{leads_to}'")
        await person.settled()


@pytest.mark.parametrize(("language", "theme", "width"), LOOKS)
async def test_axe_finds_no_barrier_on_any_page(
    person: Person, axe_source: str, language: str, theme: str, width: int
) -> None:
    await person.visit_signed_out(language=language, theme=theme, width=width)
    found = {"sign-in": await person.barriers(axe_source)}
    await person.keeps_picture(f"sign-in-{language}-{theme}-{width}")
    await person.visit(language=language, theme=theme, width=width)
    for page in pages():
        await person.go(page)
        found[page] = await person.barriers(axe_source)
        assert await person.sideways() <= 0, page
        await person.keeps_picture(f"{page}-{language}-{theme}-{width}")
    assert {page: barriers for page, barriers in found.items() if barriers} == {}


async def test_no_page_scrolls_sideways_on_a_window_of_320_pixels(person: Person) -> None:
    await person.visit(language="ru", width=320, height=640)
    for page in pages():
        await person.go(page)
        assert await person.sideways() <= 0, page


FOCUSED = "document.activeElement.closest('label')?.innerText || document.activeElement.innerText"


async def test_the_focus_stays_on_a_group_that_is_chosen_and_goes_back_to_the_link_by_which_a_page_was_left(
    person: Person,
) -> None:
    for name in ("Focus one", "Focus two"):
        await person.running.call("POST", "/v1/groups", {"id": name.lower(), "title": name})
    await person.visit("write")
    await person.writes("Find a group or a person", "Focus")
    await person.sees("Focus two")
    await person.browser.run("[...document.querySelectorAll('.picks input')].at(-1).focus()")
    for expected in (True, False):
        await person.browser.press(" ")
        chosen = "document.querySelectorAll('.picks input:checked').length === 1"
        await person.browser.wait_for(chosen if expected else f"!({chosen})")
        assert "Focus two" in await person.browser.run(FOCUSED)
    await person.visit("groups")
    await person.sees("Focus two")
    await person.presses("Focus two")
    await person.browser.wait_for("document.activeElement.nodeName === 'H1'")
    await person.browser.run("history.back()")
    await person.browser.wait_for(f"({FOCUSED}) === 'Focus two'")


async def test_the_home_page_shows_the_last_messages_and_a_long_text_has_two_lines_on_a_phone(person: Person) -> None:
    body = {
        "sender": {"id": "dean"},
        "text": "<b>Home</b> &amp; " + "a long text " * 60,
        "content": {"parse_mode": "HTML"},
        "channels": ["email"],
        "recipients": [{"id": 1, "name": "Anna", "contacts": {"email": "home@example.org"}}],
        "answer": {"kind": "confirm"},
    }
    await person.running.call("POST", "/v1/deliveries", body)
    await person.visit("home", language="ru", width=390)
    await person.sees("Последние сообщения")
    await person.sees("Home & a long text")
    await person.sees("ответили: 0 из 1")
    await person.keeps_picture("home-messages-ru-390")
    lines = "(one) => one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).lineHeight)"
    assert await person.browser.run(f"({lines})(document.querySelector('.last .cut'))") < 2.1
    await person.go("messages")
    await person.sees("Home & a long text")
    assert await person.browser.run(f"({lines})(document.querySelector('.rows .cut'))") < 2.1
    await person.keeps_picture("messages-long-ru-390")
    await person.running.call("POST", "/v1/deliveries", {**body, "text": "<b>A later one</b>"})
    await person.go("home")
    await person.sees("A later one")


@pytest.mark.parametrize("page", ["write", "accounts"])
async def test_the_heading_keeps_the_focus_when_its_page_is_painted_anew(person: Person, page: str) -> None:
    await person.visit("home")
    await person.go(page)
    has_focus = f"document.activeElement.matches('.page-{page} h1')"
    await person.browser.wait_for(has_focus)
    await stays(lambda: person.browser.run(has_focus), during=0.6)


STOPS = """[...document.querySelectorAll(
  '#content :is(a[href], button, input, select, textarea, summary, [tabindex="0"])')]
  .filter((one) => !one.disabled && one.tabIndex >= 0 && one.type !== 'hidden' && one.checkVisibility())
  .filter((one) => one.type !== 'radio' || one === (document.querySelector(`[name="${one.name}"]:checked`) ??
    document.querySelector(`[name="${one.name}"]`)))"""
BEGINS = "window.walked = 0; window.leaps = []; window.last = null"
RECORDS = f"""{BEGINS}; document.addEventListener('focusin', ({{target}}) => {{
  if (target === window.last) return;  // a page that was painted anew has put the focus back
  const stops = {STOPS}, name = target.ariaLabel || target.labels?.[0]?.innerText || target.innerText || target.title;
  const isNext = stops.indexOf(target) === stops.indexOf(window.last) + 1;
  if (!isNext) window.leaps.push(`${{window.last?.outerHTML}}: ${{name}}`);
  if (!name) window.leaps.push(`no name: ${{target.outerHTML}}`);
  window.last = target;
  window.walked += 1;
}})"""
"""Compares each move of the focus with the page as it is then, so that it may change in between."""
MOST_STOPS = 12


async def test_tab_goes_through_each_page_in_its_order_and_leaves_nothing_out(person: Person) -> None:
    await person.visit("account", language="ru")
    await person.browser.run(RECORDS)
    ends = f"window.walked >= {MOST_STOPS} || ({STOPS}.at(-1) ?? document.activeElement) === document.activeElement"
    walked = 0
    for page in (one for one in pages() if one not in ("account", "thread")):
        await person.go(page)
        await person.browser.wait_for(f"document.activeElement.matches('.page-{page} h1')")  # not of the page before
        await person.browser.run(BEGINS)
        for _ in range(3 * MOST_STOPS):  # a date has several stops
            if await person.browser.run(ends):
                break
            await person.browser.press("Tab")
        else:
            pytest.fail(f"{page}: the focus does not get to the end")
        assert await person.browser.run("window.leaps") == [], page
        walked += await person.browser.run("window.walked")
    assert walked > 100
