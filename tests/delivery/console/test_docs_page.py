"""The page about the API: search, and a request from its forms."""

from tests.delivery.console.conftest import Person


async def test_an_operation_is_found_and_tried_with_the_session_and_with_a_key(person: Person, axe_source: str) -> None:
    await person.visit()
    await person.browser.open(f"{person.running.url}/docs", "en")
    await person.browser.wait_for("document.querySelectorAll('#operations details').length > 50")
    await person.writes("Search", "who makes the request")
    await person.sees("Operations found: 1")
    await person.browser.run("document.querySelector('#operations details:not([hidden])').open = true")
    await person.presses("Send")
    await person.sees("200 OK")
    await person.sees('"kind": "key"')
    await person.writes("API key", "wrong")
    await person.presses("Send")
    await person.sees("KEY_UNKNOWN")
    await person.keeps_picture("docs")
    await person.browser.show(390, 800)
    assert await person.sideways() <= 0
    assert await person.barriers(axe_source) == []
