"""Content over HTTP: marks, buttons, files by URL; validated with codes, shown in the history."""

from typing import Any

import pytest

from couriers.sending.interface import Message, Outcome, Sent
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.delivery.test_deliveries import finished

PHOTO = {"type": "photo", "url": "https://example.org/menu.png"}
CONTENT = {
    "parse_mode": "HTML",
    "inline": [[{"text": "Да", "data": "yes"}, {"text": "Сайт", "url": "https://example.org"}]],
    "reply": [],
    "attachments": [PHOTO, {"type": "document", "provider_id": "BQAC"}],
    "reply_to": "12",
}
ANNA = {"recipients": [{"id": 1, "contacts": {"telegram": "100001"}}], "channels": ["telegram"]}
YES = {"text": "Да", "data": "yes"}


async def test_content_reaches_the_courier_and_the_history_shows_it_and_what_was_not_shown(
    api: Api, courier: Couriers
) -> None:
    attempted: list[Message] = []

    def sent(message: Message) -> Outcome:
        attempted.append(message)
        return Sent("1")

    await courier("telegram", sent)
    made = await api.call("POST", "/v1/deliveries", delivery_body(**ANNA, text="<b>Меню</b>", content=CONTENT))
    history = await finished(api, made.headers["Location"])
    assert history["content"] == CONTENT
    not_shown = ["parse_mode", "inline", "reply_to", "reply", "photo", "document"]
    assert history["recipients"][0]["outcomes"]["telegram"]["not_shown"] == not_shown
    assert [message.text for message in attempted] == ["Меню"]


async def test_a_delivery_with_only_a_text_shows_no_content(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    made = await api.call("POST", "/v1/deliveries", delivery_body(**ANNA))
    history = await finished(api, made.headers["Location"])
    assert "content" not in history
    assert "not_shown" not in history["recipients"][0]["outcomes"]["telegram"]


async def test_a_text_may_be_missing_only_with_an_attachment(api: Api) -> None:
    body = {name: value for name, value in delivery_body().items() if name != "text"}
    assert (await api.call("POST", "/v1/deliveries", {**body, "content": {"attachments": [PHOTO]}})).status == 202
    assert (await api.call("POST", "/v1/deliveries", {**body, "content": {"inline": [[YES]]}})).code == "TEXT_EMPTY"
    assert (await api.call("POST", "/v1/deliveries", {**body, "content": {}})).code == "TEXT_EMPTY"
    assert (await api.call("POST", "/v1/deliveries", body)).code == "REQUIRED"
    for blank in ("<b></b>", "<b> </b>", "&#32;", "<i>\u200b</i>", "\u200e\ufeff"):
        content = {"content": {"parse_mode": "HTML"}} if blank.isascii() or "<" in blank else {}
        for path in ("/v1/deliveries", "/v1/deliveries/preview"):
            assert (await api.call("POST", path, {**body, **content, "text": blank})).code == "TEXT_EMPTY", blank


@pytest.mark.parametrize(
    ("content", "path", "code"),
    [
        ({"attachments": [{"type": "photo", "path": "/etc/passwd"}]}, "content.attachments.0.path", "UNKNOWN_FIELD"),
        (
            {"attachments": [{"type": "photo", "url": "file:///etc/passwd"}]},
            "content.attachments.0.url",
            "WRONG_FORMAT",
        ),
        ({"attachments": [{"type": "film", "url": "https://x.org"}]}, "content.attachments.0.type", "WRONG_VALUE"),
        ({"attachments": [{"type": "photo"}]}, "content.attachments.0", "ATTACHMENT_MALFORMED"),
        ({"attachments": [{**PHOTO, "provider_id": "x"}]}, "content.attachments.0", "ATTACHMENT_MALFORMED"),
        ({"attachments": [PHOTO] * 51}, "content.attachments", "TOO_MANY_ATTACHMENTS"),
        ({"inline": [[{"text": "x"}]]}, "content.inline", "BUTTON_MALFORMED"),
        ({"inline": [[{**YES, "url": "https://x.org"}]]}, "content.inline", "BUTTON_MALFORMED"),
        ({"inline": [[{"text": "x", "url": "javascript:alert(1)"}]]}, "content.inline.0.0.url", "WRONG_FORMAT"),
        ({"inline": [[YES] * 101]}, "content.inline", "TOO_MANY_BUTTONS"),
        ({"inline": [[{"text": "я" * 256, "data": "я" * 256}] * 40]}, "content", "CONTENT_TOO_LARGE"),
        ({"reply": [[" "]]}, "content.reply.0.0", "WRONG_FORMAT"),
        ({"reply": [["a"]], "request_contact": ["b"]}, "content.request_contact", "BUTTON_MALFORMED"),
        ({"edit": "5"}, "content.edit", "UNKNOWN_FIELD"),
        ({"parse_mode": "Markdown"}, "content.parse_mode", "WRONG_VALUE"),
        (None, "content", "WRONG_TYPE"),
    ],
)
async def test_content_that_is_not_allowed_is_refused_with_its_path(
    api: Api, content: Any, path: str, code: str
) -> None:
    response = await api.call("POST", "/v1/deliveries", delivery_body(content=content))
    assert response.status == 400
    assert [(one["path"], one["code"]) for one in response.json["errors"]] == [(path, code)]


async def test_a_broken_mark_is_refused_when_the_delivery_is_accepted(api: Api) -> None:
    body = delivery_body(text="Пары <b>не будет", content={"parse_mode": "HTML"})
    response = await api.call("POST", "/v1/deliveries", body)
    assert (response.status, response.code) == (422, "MARKS_BROKEN")
    (error,) = response.json["errors"]
    assert (error["path"], "character 6: <b> is never closed" in error["message"]) == ("text", True)
