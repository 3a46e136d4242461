"""A recipient as one line of text: one notation for the JSON body, the command line and the web page."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.people import User
from core.orders.order import RECIPIENT_PATTERN, read_recipient
from tests.delivery.conftest import Api, delivery_body


@pytest.mark.parametrize(
    ("line", "recipient"),
    [
        ("7", {"id": 7}),
        (" anna ", {"id": "anna"}),
        ("007", {"id": "007"}),
        ("7=telegram:100001", {"id": 7, "contacts": {"telegram": ["100001"]}}),
        ("7 = sms: +7 999, sms:+7 998", {"id": 7, "contacts": {"sms": ["+7 999", "+7 998"]}}),
        ("telegram:100001", {"id": "telegram:100001", "contacts": {"telegram": ["100001"]}}),
        ("group:ИВТ-21", {"group": "ИВТ-21"}),
        ("supergroup:1 курс", {"supergroup": "1 курс"}),
    ],
)
def test_a_line_means_the_same_as_an_object(line: str, recipient: dict[str, Any]) -> None:
    assert read_recipient(line) == recipient


@given(st.text(alphabet="7a :=,\n\tяgroup") | st.from_regex(RECIPIENT_PATTERN))
def test_the_pattern_of_the_schema_accepts_what_is_read(line: str) -> None:
    try:
        read_recipient(line)
        is_read = True
    except ValueError:
        is_read = False
    assert is_read == bool(re.fullmatch(RECIPIENT_PATTERN.strip("^$"), line))


async def test_lines_and_objects_may_be_mixed(api: Api) -> None:
    for number in (8, 9):
        await api.services.core.directory.users.create("default", User(number))
    given = ["7=telegram:100001, sms: +79991112233", "telegram:100002", "8", "7=telegram:100003", {"id": 9}]
    accepted = await api.call("POST", "/v1/deliveries", delivery_body(recipients=given))
    assert (accepted.status, accepted.json["recipients"]) == (202, 4)
    history = (await api.call("GET", accepted.headers["Location"])).json
    assert [one["id"] for one in history["recipients"]] == [7, "telegram:100002", 8, 9]


@pytest.mark.parametrize(
    ("code", "path", "lines"),
    [
        ("RECIPIENT_MALFORMED", "recipients.0", ["=sms:+7"]),
        ("RECIPIENT_MALFORMED", "recipients.1", ["7", "8=sms"]),
        ("RECIPIENT_MALFORMED", "recipients.0", ["8=sms:+7,"]),
        ("TOO_SHORT", "recipients.0", [""]),
        ("TOO_LONG", "recipients.0.id", ["i" * 129]),
        ("GROUP_NOT_FOUND", "recipients.0.group", ["group:ИВТ-21"]),
        ("UNKNOWN_CHANNEL", "recipients.0.contacts.pigeon", ["7=pigeon:1"]),
    ],
)
async def test_a_malformed_line_is_refused_with_its_place(api: Api, code: str, path: str, lines: list[str]) -> None:
    refused = await api.call("POST", "/v1/deliveries", delivery_body(recipients=lines))
    assert (refused.status, refused.json["errors"][0]["code"], refused.json["errors"][0]["path"]) == (400, code, path)
