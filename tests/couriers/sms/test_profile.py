"""How a profile reads an answer: paths, lines of a text, rules; and which placeholders it may have."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.errors import SetupError
from couriers.sms.profile import (
    Read,
    Reports,
    Rule,
    SmsAnswer,
    decide,
    load_profile,
    read_answer,
    read_reports,
    value_at,
)


@pytest.mark.parametrize(
    ("found", "path", "value"),
    [
        ({"sms": {"7": {"id": 5}}}, "sms.*.id", "5"),
        ({"sms": [{"id": "a"}, {"id": "b"}]}, "sms.*.id", "a"),
        ({"sms": [{"id": "a"}, {"id": "b"}]}, "sms.1.id", "b"),
        ({"sms": [{"id": "a"}]}, "sms.1.id", ""),
        ({"sms": [{"id": "a"}]}, "sms.first.id", ""),
        ({"sms": []}, "sms.*.id", ""),
        ({"sms": {}}, "sms.*", ""),
        ({"ok": True, "code": None, "id": 0}, "ok", "true"),
        ({"ok": True, "code": None, "id": 0}, "code", ""),
        ({"ok": True, "code": None, "id": 0}, "id", "0"),
        ({"sms": {"id": 5}}, "sms", ""),
        ({"sms": [5]}, "sms", ""),
        ({"sms": 5}, "sms.id", ""),
        ({"sms": 5}, "", ""),
        (None, "sms", ""),
    ],
)
def test_a_path_leads_to_a_value_as_text(found: Any, path: str, value: str) -> None:
    assert value_at(found, path) == value


@pytest.mark.parametrize(
    ("answer", "body", "code", "number"),
    [
        (SmsAnswer((), "text", id="1", code="0"), "100\n 000-1 \n", "100", "000-1"),
        (SmsAnswer((), "text", id="2", code="x"), "100\n000-1", "", ""),
        (SmsAnswer((), id="id", code=("error.code", "status")), '{"id": 1, "status": "OK"}', "OK", "1"),
        (SmsAnswer((), id="id", code=("error.code", "status")), '{"error": {"code": 7}, "status": "NO"}', "7", ""),
        (SmsAnswer((), id="id", code="status"), "<html>", "", ""),
    ],
)
def test_an_answer_is_read_by_its_paths(answer: SmsAnswer, body: str, code: str, number: str) -> None:
    assert read_answer(answer, 200, body) == Read(200, body, code, number)


FOUND = Read(200, "OK 5", "5", "id-1")


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ({}, True),
        ({"http": [200, 201]}, True),
        ({"http": [500]}, False),
        ({"code": [4, 5]}, True),
        ({"code": ["5"]}, True),
        ({"code": [4]}, False),
        ({"has_id": True}, True),
        ({"has_id": False}, False),
        ({"contains": "OK"}, True),
        ({"contains": "NO"}, False),
        ({"http": [200], "code": [4]}, False),
        ({"http": [200], "contains": "NO"}, False),
    ],
)
def test_a_rule_fits_if_all_that_it_names_is_in_the_answer(rule: Mapping[str, Any], fits: bool) -> None:
    first, last = Rule("sent", **rule), Rule("unknown")
    assert first.fits(FOUND) is fits
    assert decide([first, last], FOUND) is (first if fits else last)


def test_without_a_rule_that_fits_there_is_no_decision() -> None:
    assert decide([Rule("sent", http=[500])], FOUND) is None


def test_a_call_with_one_report_is_read() -> None:
    reports = Reports("id", id="message.id", state="message.state", states={"DELIVRD": "delivered"})
    call = {"message": {"id": 7, "state": "DELIVRD"}}
    assert read_reports(reports, call) == [("7", "delivered")]


@pytest.mark.parametrize(("length", "is_valid"), [(1, True), (200, True), (201, False)])
def test_a_path_has_at_most_200_characters(tmp_path: Path, length: int, is_valid: bool) -> None:
    file = tmp_path / "x.yaml"
    balance = f"balance: {{request: {{url: 'https://x'}}, path: {'a' * length}}}"
    file.write_text(f"{{name: x, send: {{url: 'https://x'}}, answer: {{rules: []}}, {balance}}}")
    if is_valid:
        assert load_profile(str(file)).balance
    else:
        with pytest.raises(SetupError, match="no profile"):
            load_profile(str(file))


REQUEST = "{url: 'https://x', fields: {a: '{nonsense}'}}"


@pytest.mark.parametrize(
    "part", [f"status: {{request: {REQUEST}, answer: {{rules: []}}}}", f"balance: {{request: {REQUEST}, path: a}}"]
)
def test_a_wrong_placeholder_of_any_request_is_refused(tmp_path: Path, part: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(f"{{name: x, send: {{url: 'https://x'}}, answer: {{rules: []}}, {part}}}")
    with pytest.raises(SetupError, match="wrong placeholder"):
        load_profile(str(file))
    file.write_text(file.read_text().replace("{nonsense}", "{password}"))
    assert load_profile(str(file)).name == "x"
