"""A real Kannel and the sandbox respond alike to the same requests."""

from urllib.parse import unquote_plus

from tests.sandbox.conftest import CallbackServer, Sms
from tests.support.kannel import Kannel
from tests.support.waiting import until

GOOD = {"from": "Ada", "to": "+79991112233", "text": "hello"}
REQUESTS: dict[str, dict[str, str]] = {
    "good": GOOD,
    "two numbers": {**GOOD, "to": "+79991112233 +79991112234"},
    "an invalid number among valid ones": {**GOOD, "to": "abc +79991112233"},
    "UCS-2": {**GOOD, "text": "Привет 😀", "charset": "utf-8", "coding": "2"},
    "no text": {"from": "Ada", "to": "+79991112233"},
    "validity": {**GOOD, "validity": "60"},
    "validity that is not a number": {**GOOD, "validity": "abc"},
    "mask 66": {**GOOD, "dlr-mask": "66"},
    "missing to": {"from": "Ada", "text": "hello"},
    "empty to": {**GOOD, "to": ""},
    "blank to": {**GOOD, "to": "  "},
    "bad number": {**GOOD, "to": "abc"},
    "missing from": {"to": "+79991112233", "text": "hello"},
    "unknown charset": {**GOOD, "charset": "nosuch", "coding": "2"},
    "coding 5": {**GOOD, "coding": "5"},
    "mask 67": {**GOOD, "dlr-mask": "67"},
    "negative validity": {**GOOD, "validity": "-5"},
}


async def responses(sms: Sms, url: str, credentials: dict[str, str]) -> dict[str, tuple[int, str]]:
    """Send all requests to one gateway."""
    found = {}
    for name, request in REQUESTS.items():
        async with sms.session.get(url, params={**credentials, **request}) as answer:
            found[name] = (answer.status, await answer.text())
    return found


async def test_a_real_kannel_responds_as_the_sandbox(kannel: Kannel, sms: Sms) -> None:
    real = await responses(sms, kannel.url, {"username": kannel.username, "password": kannel.password})
    simulated = await responses(sms, sms.server.url, {"username": "ada", "password": "sandbox"})
    assert simulated == real
    assert {status for status, _ in real.values()} == {202, 400}


async def test_a_real_kannel_refuses_a_wrong_password_and_a_form_as_the_sandbox(kannel: Kannel, sms: Sms) -> None:
    for url in (kannel.url, sms.server.url):
        async with sms.session.get(url, params={**GOOD, "username": "ada", "password": "wrong"}) as answer:
            assert (answer.status, await answer.text()) == (403, "Authorization failed for sendsms")
        form = {**GOOD, "username": "ada", "password": "secret"}
        async with sms.session.post(url, data=form) as answer:
            assert (answer.status, await answer.text()) == (400, "Invalid content-type")


async def test_a_real_kannel_sends_delivery_reports_as_the_sandbox(
    kannel: Kannel, sms: Sms, callbacks: CallbackServer
) -> None:
    for url, password, path in ((kannel.url, kannel.password, "real"), (sms.server.url, "sandbox", "simulated")):
        dlr_url = f"{callbacks.url}/{path}?state=%d&to=%p&from=%P&at=%t&user=%n&strange=%y&percent=%%25"
        known = {"username": "ada", "password": password, "dlr-mask": "31", "dlr-url": dlr_url}
        async with sms.session.get(url, params={**known, **GOOD}) as answer:
            assert answer.status == 202
    await until(lambda: len(callbacks.calls) == 4)
    real, simulated = ([c for c in callbacks.calls if c["path"] == f"/{path}"] for path in ("real", "simulated"))
    assert [call["state"] for call in simulated] == [call["state"] for call in real] == ["8", "1"]
    for one, other in zip(real, simulated, strict=True):
        assert {**one, "path": "", "at": ""} == {**other, "path": "", "at": ""}
        assert len(one["at"]) == len(other["at"]) == len("2026-11-21 06:02:45")


async def test_a_real_kannel_delivers_the_text_that_the_sandbox_shows(kannel: Kannel, sms: Sms) -> None:
    text = "Привет, {мир} 😀"
    more = {"to": "+79991112233", "from": "Ada", "text": text, "charset": "utf-8", "coding": "2"}
    async with sms.session.get(kannel.url, params={"username": "ada", "password": "secret", **more}) as answer:
        assert answer.status == 202
    await sms.send("+79991112233", text, coding="2")
    await until(lambda: len(kannel.delivered) == 1)
    sender, number, kind, data = kannel.delivered[0].split(" ", 3)
    assert (sender, number, kind) == ("Ada", "+79991112233", "ucs-2")
    assert unquote_plus(data, "latin-1").encode("latin-1").decode("utf-16-be") == text
    assert sms.texts("+79991112233") == [text]


async def test_a_real_kannel_cuts_a_long_text_into_the_same_number_of_parts(kannel: Kannel, sms: Sms) -> None:
    texts = ["a" * 160, "a" * 161, "a" * 152 + "€" + "a" * 152, "€" * 80, "€" * 81]
    for text in texts:
        before = len(kannel.delivered)
        counted = sms.state.counter("sms", "parts")
        request = {**GOOD, "text": text, "charset": "utf-8", "coding": "0"}
        async with sms.session.get(kannel.url, params={"username": "ada", "password": "secret", **request}) as answer:
            assert answer.status == 202
        await sms.send("+79991112233", text, coding="0")
        expected = sms.state.counter("sms", "parts") - counted
        await until(lambda before=before, expected=expected: len(kannel.delivered) >= before + expected)  # type: ignore[misc]
        assert len(kannel.delivered) == before + expected
