"""Every page of the menu, in both languages, both themes, on a wide screen and on a phone."""

import re
from pathlib import Path

import pytest

from tests.delivery.console.conftest import Person

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
    return re.findall(r'\{ name: "([a-z_-]+)"', MENU.read_text())


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
