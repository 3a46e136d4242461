"""The page on which a recipient answers by a link: what opens it changes nothing, a POST answers."""

import asyncio
import logging
import re
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp import ClientSession, FormData

from couriers.sending.runtime import Runtime
from tests.delivery.conftest import Api, ApiResponse, delivery_body, read
from tests.delivery.test_deliveries import finished
from tests.support.stack import QUICK, FakeCourier

OPTIONS = [{"key": "yes", "text": "Приду & <один>"}, {"key": "no", "text": "Не приду"}]
CHOICE = {"kind": "choice", "options": OPTIONS}
PEOPLE = [
    {"id": 1, "name": "Мария Ивановна Петрова", "contacts": {"mail": "1@example.org"}},
    {"id": 2, "contacts": {"mail": "2@example.org"}},
]


class Links:
    """A courier without buttons, and the links that its people have got."""

    def __init__(self, api: Api, courier: FakeCourier) -> None:
        self.api = api
        self.courier = courier

    async def ask(self, answer: dict[str, Any] = CHOICE, **more: Any) -> str:
        """Send a question and return the address of its delivery."""
        fields = {"recipients": PEOPLE, "channels": ["mail"], "text": "Придёте?", "answer": answer, **more}
        made = await self.api.call("POST", "/v1/deliveries", delivery_body(**fields))
        assert made.status == 202, made
        await finished(self.api, made.headers["Location"])
        return str(made.headers["Location"])

    def of(self, number: int) -> str:
        """Return the path of the newest link of a person."""
        texts = [one.text for one in self.courier.attempted if one.address == f"{number}@example.org"]
        (path,) = re.findall(r"https://ada\.example(/a/\w{45})$", texts[-1], re.MULTILINE)
        return str(path)

    async def browse(self, method: str, path: str, language: str = "ru", **form: str) -> ApiResponse:
        """Do what a browser without cookies and JavaScript does."""
        headers = {"Accept": "text/html", "Accept-Language": language}
        body = urlencode(form).encode() if form else None
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        async with (
            ClientSession() as session,
            session.request(method, self.api.url + path, data=body, headers=headers) as response,
        ):
            return await read(response)

    async def state(self, where: str) -> list[tuple[str, str | None, str | None]]:
        rows = (await self.api.call("GET", f"{where}/answers")).json["recipients"]
        return [(one["answer"]["state"], one["answer"].get("value"), one["answer"].get("by")) for one in rows]


@pytest.fixture
def channel() -> str:
    return "mail"


@pytest.fixture
async def links(api: Api, channel: str) -> Any:
    courier = FakeCourier(channel)
    runtime = Runtime(api.store, channel, replace(QUICK, answer_url="https://ada.example/a/"))
    await runtime.add(courier)
    running = asyncio.create_task(runtime.run())
    yield Links(api, courier)
    runtime.stop()
    await running


def text_of(page: ApiResponse) -> str:
    assert page.headers["Content-Type"].startswith("text/html"), page
    return page.body.decode()


async def test_whoever_opens_a_link_changes_nothing_and_a_post_answers(links: Links) -> None:
    where = await links.ask()
    path, before = links.of(1), (await links.api.call("GET", where)).json
    for method, address in (("GET", path), ("HEAD", path), ("GET", f"{path}?o=1"), ("HEAD", f"{path}?o=2")):
        opened = await links.browse(method, address)
        assert (opened.status, opened.headers["Cache-Control"]) == (200, "no-store")
        assert opened.headers["Referrer-Policy"] == "no-referrer"
        assert "Set-Cookie" not in opened.headers
    assert (await links.api.call("GET", where)).json == before
    page = text_of(await links.browse("GET", f"{path}?o=2"))
    assert "Придёте?" in page
    assert "Вы отвечаете как <b>Мария И. П.</b>" in page
    assert 'value="no" checked' in page
    assert "Приду &amp; &lt;один&gt;" in page
    answered = text_of(await links.browse("POST", path, option="no"))
    assert "Ответ записан: Не приду" in answered
    assert await links.state(where) == [("answered", "no", "link"), ("open", None, None)]
    reached = (await links.api.call("GET", where)).json["recipients"][0]["outcomes"]["mail"]
    assert (reached["status"], reached["reason"]) == ("read", "answered")
    changed = text_of(await links.browse("POST", path, option="yes"))
    assert "Ответ изменён" in changed
    again = text_of(await links.browse("POST", path, option="yes"))
    assert "Уже записано" in again


async def test_of_two_people_with_the_same_link_the_last_one_counts_and_both_stay_visible(links: Links) -> None:
    where = await links.ask()
    for option in ("yes", "no"):
        assert "Вы отвечаете как <b>Мария И. П.</b>" in text_of(await links.browse("POST", links.of(1), option=option))
    answer = (await links.api.call("GET", f"{where}/answers")).json["recipients"][0]["answer"]
    assert (answer["value"], answer["by"], [one["value"] for one in answer["revisions"]]) == ("no", "link", ["yes"])


async def test_a_person_without_a_name_answers_by_its_number_and_each_link_for_its_own_person(links: Links) -> None:
    where = await links.ask()
    assert links.of(1) != links.of(2)
    assert "получатель № 2" in text_of(await links.browse("GET", links.of(2)))
    await links.browse("POST", links.of(2), option="yes")
    assert await links.state(where) == [("open", None, None), ("answered", "yes", "link")]


async def test_a_closed_question_is_read_only_and_an_answer_that_was_begun_before_is_late(links: Links) -> None:
    where = await links.ask()
    await links.browse("POST", links.of(1), option="yes")
    await links.api.call("POST", f"{where}/answers:close")
    for number, text in ((1, "Ваш ответ: Приду"), (2, "Ответа от вас не было.")):
        page = text_of(await links.browse("GET", links.of(number)))
        assert "Приём ответов закончен." in page
        assert text in page
        assert "<form" not in page
    late = text_of(await links.browse("POST", links.of(2), option="no"))
    assert "Ответ отмечен как поздний." in late
    assert (await links.state(where))[1] == ("late", "no", "link")


WRITTEN = [
    ("text", "<textarea", "  ", "Ответ – текст", "Двое & <один>", {"value": None, "text": "Двое & <один>"}),
    ("number", 'inputmode="decimal"', "много", "Нужно число", "3,50", {"value": "3.5", "text": "3.5"}),
    ("date", 'type="date"', "завтра", "Нужна дата", "2027-03-01", {"value": "2027-03-01", "text": "2027-03-01"}),
]


@pytest.mark.parametrize(("kind", "field", "wrong", "wanted", "given", "stored"), WRITTEN)
async def test_what_is_not_asked_for_is_said_above_the_form(
    links: Links, kind: str, field: str, wrong: str, wanted: str, given: str, stored: dict[str, Any]
) -> None:
    where = await links.ask({"kind": kind})
    assert field in text_of(await links.browse("GET", links.of(1)))
    refused = text_of(await links.browse("POST", links.of(1), option=wrong))
    assert f'role="alert">{wanted}' in refused
    assert await links.state(where) == [("open", None, None), ("open", None, None)]
    assert "Ответ записан" in text_of(await links.browse("POST", links.of(1), option=given))
    (first, _) = (await links.api.call("GET", f"{where}/answers")).json["recipients"]
    assert {name: first["answer"][name] for name in stored} == stored
    page = text_of(await links.browse("GET", links.of(1)))
    assert "Изменить ответ" in page
    assert "<один>" not in page


async def test_a_file_is_sent_on_the_page_and_downloaded_by_the_sender(links: Links) -> None:
    where, name, content = await links.ask({"kind": "file"}), "справка 1.pdf", bytes(range(256)) * 5000
    assert 'type="file"' in text_of(await links.browse("GET", links.of(1)))
    for form in ({"option": "report.pdf"}, {}):
        refused = await links.browse("POST", links.of(1), **form)
        assert "Нужен файл" in text_of(refused)
    for sent in (b"", content):
        file = FormData(quote_fields=False)
        file.add_field("option", sent, filename=name)
        async with ClientSession() as session, session.post(links.api.url + links.of(1), data=file) as response:
            page = text_of(await read(response))
        assert ("Файл пустой" if not sent else "Ответ записан: справка 1.pdf") in page
    (first, second) = (await links.api.call("GET", f"{where}/answers")).json["recipients"]
    assert (first["answer"]["text"], first["answer"]["by"]) == ("справка 1.pdf", "link")
    read_again = await links.api.call("GET", f"{where}/answers/file?recipient=1")
    assert (read_again.status, read_again.body) == (200, content)
    assert read_again.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8")
    assert (await links.api.call("GET", f"{where}/answers/file?recipient=2")).code == "ANSWER_WITHOUT_FILE"
    rows = (await links.api.call("GET", f"{where}/answers.csv")).body.decode().splitlines()
    assert "справка 1.pdf" in rows[1]
    assert second["answer"]["state"] == "open"


async def test_the_page_says_until_when_one_can_answer_and_a_confirmation_has_one_button(links: Links) -> None:
    await links.ask({"kind": "confirm", "until": "2030-01-01T10:00:00Z"})
    page = text_of(await links.browse("GET", links.of(1)))
    assert "Ответить или изменить ответ можно до 01.01.2030 10:00." in page
    assert '<button name="option" value="read">Прочитано</button>' in page
    answered = text_of(await links.browse("POST", links.of(1), option="read"))
    assert "Спасибо, отмечено." in answered
    assert "<form" not in answered


async def test_a_final_answer_can_be_corrected_for_a_minute_only(links: Links) -> None:
    where = await links.ask({**CHOICE, "change": False})
    await links.browse("POST", links.of(1), option="yes")
    page = text_of(await links.browse("GET", links.of(1)))
    assert ("Изменить ответ" in page, "<form" in page) == (True, True)
    links.api.services.core.store.clock_offset_ms += 61_000
    assert "<form" not in text_of(await links.browse("GET", links.of(1)))
    assert "<form" in text_of(await links.browse("GET", links.of(2)))
    assert await links.state(where) == [("answered", "yes", "link"), ("open", None, None)]


@pytest.mark.parametrize(("locale", "words"), [("ru", "Эта ссылка не действует"), ("en-US", "This link does not work")])
async def test_a_forged_or_broken_link_is_refused_with_a_sentence(links: Links, locale: str, words: str) -> None:
    await links.ask()
    path = links.of(1)
    forged = [path[:-1] + ("a" if path[-1] != "a" else "b"), "/a/" + "z" * 45, "/a/0", path + "0", "/a/%D1%8F"]
    for one in forged:
        for method, form in (("GET", {}), ("POST", {"option": "yes"})):
            refused = await links.browse(method, one, locale, **form)
            assert (refused.status, words in text_of(refused)) == (403, True), one


async def test_what_is_no_option_is_refused_and_a_big_form_too(links: Links) -> None:
    where = await links.ask()
    for form in ({"option": "maybe"}, {"other": "yes"}):
        refused = await links.browse("POST", links.of(1), **form)
        assert (refused.status, "Ответ не выбран" in text_of(refused)) == (400, True)
    assert (await links.browse("POST", links.of(1), option="y" * 70_000)).status == 413
    assert await links.state(where) == [("open", None, None)] * 2


async def test_a_deleted_person_answers_nothing(links: Links) -> None:
    await links.ask()
    path = links.of(1)
    await links.api.services.core.deliveries.of_person.erase("default", "1")
    for method, form in (("GET", {}), ("POST", {"option": "yes"})):
        refused = await links.browse(method, path, **form)
        assert (refused.status, "Данные этого получателя удалены" in text_of(refused)) == (403, True)
        assert "Мария" not in text_of(refused)
    assert (await links.browse("GET", links.of(2))).status == 200


async def test_a_link_is_opened_only_so_often(links: Links) -> None:
    await links.ask()
    found = [await links.browse("GET", links.of(1)) for _ in range(40)]
    assert {one.status for one in found} == {200, 429}
    assert "Слишком много запросов" in text_of(found[-1])
    assert (await links.browse("GET", links.of(2))).status == 200


async def test_no_log_has_the_token_and_the_page_loads_nothing(links: Links, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, "aiohttp.access")  # as `./ada serve` does
    await links.ask()
    path = links.of(1)
    page = await links.browse("GET", path)
    await links.browse("POST", path, option="yes")
    await links.browse("POST", path, option="maybe")
    assert path.removeprefix("/a/") not in caplog.text
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'none'" in policy
    assert "form-action 'self'" in policy
    assert "<script" not in text_of(page)


async def test_the_preview_says_how_people_answer_and_how_many_cannot(links: Links) -> None:
    people = [*PEOPLE, {"id": 3, "contacts": {"sms": "+79990000003"}}]
    body = delivery_body(recipients=people, channels=["mail", "sms"], answer=CHOICE)
    preview = (await links.api.call("POST", "/v1/deliveries/preview", body)).json
    assert "shown" in preview, preview
    shown = preview["shown"]
    assert (shown["mail"]["answer_by"], shown["mail"]["not_shown"]) == ("link", [])
    assert shown["mail"]["messages"][0]["text"].endswith("https://ada.example/a/…")
    assert "answer_by" not in shown["sms"]
    assert shown["sms"]["not_shown"] == ["answer"]
    assert preview["cannot_answer"] == 1
    del body["answer"]
    plain = (await links.api.call("POST", "/v1/deliveries/preview", body)).json
    assert (plain["cannot_answer"], "answer_by" in plain["shown"]["mail"]) == (0, False)


@pytest.mark.parametrize("channel", ["telegram"])
async def test_the_preview_names_a_group_chat_in_which_nobody_can_answer(links: Links) -> None:
    """It showed a link, and the courier puts none into a group."""
    chat = {"id": "class", "contacts": {"telegram": "-1001000000009"}}
    people = [chat, {"id": 1, "contacts": {"telegram": "100001"}}]
    body = delivery_body(recipients=people, channels=["telegram"], answer=CHOICE)
    preview = (await links.api.call("POST", "/v1/deliveries/preview", body)).json
    assert (preview["cannot_answer"], preview["shown"]["telegram"]["answer_by"]) == (1, "link")
    shown = (await links.api.call("POST", "/v1/deliveries/preview?recipient=class", body)).json["shown"]["telegram"]
    made = await links.api.call("POST", "/v1/deliveries", body)
    history = await finished(links.api, made.headers["Location"])
    sent = [one["outcomes"]["telegram"].get("not_shown") for one in history["recipients"]]
    assert (shown["not_shown"], sent) == (["answer"], [["answer"], None])
