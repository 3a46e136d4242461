"""The page on which a recipient chooses what it receives: what opens it changes nothing, a POST changes it."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp import ClientSession

from cli.client.format_history import format_history
from core.deliveries.channels import ChannelFacts
from core.directory.preferences import PreferenceTokens
from couriers.sending.runtime import Runtime
from tests.delivery.conftest import Api, ApiResponse, delivery_body, read
from tests.delivery.test_deliveries import finished
from tests.support.stack import QUICK, FakeCourier

MARIA = {
    "id": "m",
    "name": "Мария Ивановна <b>Петрова",
    "contacts": {"email": ["maria@example.org"], "sms": ["+79161234567"], "mail": ["m@example.org"]},
    "opt_out": ["vk"],
}


class LinkingCourier(FakeCourier):
    links_preferences = True


async def browse(api: Api, method: str, path: str, form: Sequence[tuple[str, str]] = (), **headers: str) -> ApiResponse:
    """Do what a browser without cookies and JavaScript does."""
    async with (
        ClientSession() as session,
        session.request(method, api.url + path, data=urlencode(form) or None, headers=headers) as response,
    ):
        return await read(response)


@pytest.fixture
async def path(api: Api) -> str:
    """That of Maria's link in mails."""
    for channel in ("email", "sms", "vk", "mail"):
        await api.services.core.channels.register(channel, ChannelFacts(100))
    made = await api.call("POST", "/v1/users", MARIA)
    assert made.status == 201, made
    return "/p/" + await api.services.core.preferences.token("default", "email", "maria@example.org")


async def opted_out(api: Api) -> list[str]:
    return list((await api.call("GET", "/v1/users/m")).json["opt_out"])


OFFERED = [("offered", one) for one in MARIA["contacts"]]


async def test_whoever_opens_the_link_changes_nothing_and_sees_no_whole_name_or_address(api: Api, path: str) -> None:
    before = (await api.call("GET", "/v1/users/m")).json
    for method in ("GET", "HEAD"):
        opened = await browse(api, method, path)
        assert (opened.status, opened.headers["Cache-Control"]) == (200, "no-store")
        assert opened.headers["Referrer-Policy"] == "no-referrer"
        assert "script-src 'none'" in opened.headers["Content-Security-Policy"]
        assert "Set-Cookie" not in opened.headers
    assert (await api.call("GET", "/v1/users/m")).json == before
    page = (await browse(api, "GET", path)).body.decode()
    assert "<b>Мария И. &lt;.</b>" in page
    assert "ma…@example.org" in page
    assert "…4567" in page
    assert re.findall(r'type="checkbox" name="channel" value="(\w+)" checked', page) == ["email", "sms", "mail"]
    assert not re.search(r"maria@|916123|Петрова", page)
    assert "maria" not in path


async def test_a_person_chooses_channels_and_language_and_others_stay_as_they_are(api: Api, path: str) -> None:
    saved = await browse(api, "POST", path, [*OFFERED, ("channel", "email"), ("locale", "en")])
    assert "Saved." in saved.body.decode()
    assert await opted_out(api) == ["vk", "sms", "mail"]
    assert (await api.call("GET", "/v1/users/m")).json["locale"] == "en"
    # A channel that was added meanwhile was not offered: nothing is known of what the person wants there.
    await browse(api, "POST", path, [("offered", "sms"), ("channel", "sms"), ("locale", "xx")])
    assert await opted_out(api) == ["vk", "mail"]
    assert (await api.call("GET", "/v1/users/m")).json["locale"] == "en"


async def test_the_page_of_who_has_stated_no_language_is_in_that_of_the_browser_and_states_none(
    api: Api, path: str
) -> None:
    """Whoever saved its channels had stated Russian with it."""
    shown = (await browse(api, "GET", path, (), **{"Accept-Language": "en,ru;q=0.5"})).body.decode()
    assert ('<html lang="en">' in shown, re.findall('name="locale" value=".." checked', shown)) == (True, [])
    await browse(api, "POST", path, [*OFFERED, ("channel", "email")])
    assert (await api.call("GET", "/v1/users/m")).json["locale"] is None


async def test_whoever_leaves_gets_nothing_and_can_come_back(api: Api, path: str) -> None:
    left = (await browse(api, "POST", path, OFFERED)).body.decode()
    assert "Вы отписаны" in left
    assert "Не присылать мне ничего" not in left
    assert await opted_out(api) == ["vk", *MARIA["contacts"]]
    body = delivery_body(recipients=[{"id": "m"}], channels=["mail"])
    made = await api.call("POST", "/v1/deliveries", body)
    outcome = (await api.call("GET", made.headers["Location"])).json["recipients"][0]["outcomes"]
    assert [one["reason"] for one in outcome.values()] == ["opted_out"]
    await browse(api, "POST", path, [*OFFERED, *[("channel", one) for one in MARIA["contacts"]]])
    assert await opted_out(api) == ["vk"]


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
async def test_a_mail_program_unsubscribes_from_mails_with_one_click(api: Api, path: str, content_type: str) -> None:
    fields = {"List-Unsubscribe=One-Click"}
    part = 'Content-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click'
    body = fields.pop() if "urlencoded" in content_type else f"--x\r\n{part}\r\n--x--\r\n"
    async with ClientSession() as session:
        async with session.post(api.url + path, data=body, headers={"Content-Type": content_type}) as response:
            assert response.status == 200
    assert await opted_out(api) == ["vk", "email"]


@pytest.mark.parametrize(("language", "words"), [("ru", "Эта ссылка не действует"), ("en-US", "This link does not")])
async def test_a_forged_or_broken_link_is_refused_with_a_sentence(
    api: Api, path: str, language: str, words: str
) -> None:
    other = "b" if path[-2] != "b" else "c"
    for wrong in (path[:-2] + other + path[-1], "/p/" + "A" * 60, "/p/0", "/p/%D1%8F", "/p/" + "=" * 30):
        for method in ("GET", "POST"):
            refused = await browse(api, method, wrong, OFFERED, **{"Accept-Language": language})
            assert (refused.status, words in refused.body.decode()) == (403, True), wrong
    assert await opted_out(api) == ["vk"]


async def test_a_contact_that_nobody_has_any_more_shows_nobody(api: Api, path: str) -> None:
    await api.call("DELETE", "/v1/users/m")
    gone = await browse(api, "GET", path)
    assert (gone.status, "нет в списке отправителя" in gone.body.decode()) == (404, True)
    stranger = "/p/" + await api.services.core.preferences.token("other", "email", "maria@example.org")
    assert (await browse(api, "GET", stranger)).status == 404


async def test_a_link_that_is_asked_for_too_often_has_to_wait(api: Api, path: str) -> None:
    pages = await asyncio.gather(*(browse(api, "HEAD", path) for _ in range(35)))
    assert {one.status for one in pages} == {200, 429}


async def test_messages_of_a_courier_that_links_to_the_page_have_the_link_of_their_recipient(api: Api) -> None:
    courier = LinkingCourier("mail")
    runtime = Runtime(api.store, "mail", replace(QUICK, preferences_url="https://ada.example/p/"))
    await runtime.add(courier)
    running = asyncio.create_task(runtime.run())
    people: list[dict[str, Any]] = [{"id": n, "contacts": {"mail": f"{n}@example.org"}} for n in (1, 2)]
    made = await api.call("POST", "/v1/deliveries", delivery_body(recipients=people, channels=["mail"]))
    await finished(api, made.headers["Location"])
    urls = {one.address: one.preferences_url for one in courier.attempted}
    tokens = PreferenceTokens(api.store)
    for address, url in urls.items():
        start, _, token = url.partition("/p/")
        assert (start, await tokens.open(token)) == ("https://ada.example", ("default", "mail", address))
        assert await tokens.seal("default", "mail", address) == token, "a contact has always the same link"
    assert len(set(urls.values())) == 2
    runtime.stop()
    await running


ALL = [*OFFERED, *[("channel", one) for one in MARIA["contacts"]]]


async def test_a_person_chooses_when_messages_come_and_a_sender_sees_it_before(api: Api, path: str) -> None:
    async def hours(*form: tuple[str, str]) -> str:
        page = await browse(api, "POST", path, [*ALL, *form])
        assert page.status == 200
        return str((await api.call("GET", "/v1/users/m")).json.get("hours", ""))

    zone = "UTC"
    assert await hours(("when", "window"), ("begin", "08:00"), ("end", "22:00")) == f"08:00-22:00 {zone}"
    page = (await browse(api, "GET", path)).body.decode()
    assert 'value="window" checked' in page
    assert 'name="begin" value="08:00"' in page
    assert await hours() == f"08:00-22:00 {zone}", "a form without hours leaves them"
    refused = (await browse(api, "POST", path, [*OFFERED, ("when", "daily"), ("at", "")])).body.decode()
    assert "Ничего не сохранено" in refused
    assert await opted_out(api) == ["vk"]
    now = datetime.now(UTC)
    at = f"{now + timedelta(hours=3):%H:%M}"
    await api.call("PATCH", "/v1/users/m", {"hours": f"{at}-{at} UTC"})
    assert 'value="daily" checked' in (await browse(api, "GET", path)).body.decode()
    body = delivery_body(recipients=[{"id": "m"}], channels=["mail"])
    assert (await api.call("POST", "/v1/deliveries/preview", body)).json["later"] == 1
    assert (await api.call("POST", "/v1/deliveries/preview", {**body, "urgent": True})).json["later"] == 0
    for closes, later in ((now + timedelta(hours=1), 0), (now + timedelta(hours=4), 1)):
        asked = {**body, "answer": {"kind": "confirm", "until": f"{closes:%Y-%m-%dT%H:%M:%SZ}"}}
        assert (await api.call("POST", "/v1/deliveries/preview", asked)).json["later"] == later
    assert await hours(("when", "any_time")) == ""
    assert (await api.call("PATCH", "/v1/users/m", {"hours": "at night"})).code == "HOURS_MALFORMED"


async def test_a_message_says_that_its_recipient_gets_it_later_and_when(api: Api, path: str) -> None:
    begin = (datetime.now(UTC) + timedelta(hours=3)).replace(second=0, microsecond=0)
    hours = f"{begin:%H:%M}-{begin + timedelta(hours=1):%H:%M} UTC"
    await api.call("PATCH", "/v1/users/m", {"hours": hours})
    people = [{"id": "m"}, {"id": "x", "contacts": {"mail": ["x@example.org"]}}]
    found = (await api.call("POST", "/v1/deliveries", delivery_body(recipients=people, channels=["mail"]))).json
    where, opens = f"/v1/deliveries/{found['id']}", f"{begin:%Y-%m-%dT%H:%M:%SZ}"
    history = (await api.call("GET", where)).json
    waits = {"status": "queued", "not_before": opens}
    assert [one["outcomes"]["mail"] for one in history["recipients"]] == [waits, {"status": "queued"}]
    assert f"queued, in its own hours from {opens}" in format_history(history)
    listed = (await api.call("GET", f"{where}/recipients")).json["recipients"]
    assert {one["id"]: one["why"] for one in listed} == {"m": "later", "x": "waiting"}
    assert (await api.call("GET", f"{where}/reasons")).json["reasons"] == {"later": 1, "waiting": 1}
    table = (await api.call("GET", f"{where}/recipients.csv?excel&language=ru")).body.decode()
    assert "ждёт отправки: в выбранные часы — " in table
    urgent = delivery_body(recipients=people[:1], channels=["mail"], urgent=True)
    key = (await api.call("POST", "/v1/deliveries", urgent)).json["id"]
    at_once = (await api.call("GET", f"/v1/deliveries/{key}")).json
    assert at_once["recipients"][0]["outcomes"]["mail"] == {"status": "queued"}
    await api.call("DELETE", where)
    assert "not_before" not in str((await api.call("GET", where)).json)
