"""Questions over HTTP: what is refused, the table of answers, CSV, entering on behalf, closing."""

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from urllib.parse import quote

import pytest

from cli.client.format_history import answer_totals, format_answers
from core.answers import AnswerLinks, Answers
from core.answers.buttons import AnswerTokens
from core.deliveries.channels import ChannelFacts
from core.deliveries.histories.encoding import StoredRecipient
from core.model.clock import write_time
from core.model.history_key import HistoryKey, code_of
from core.model.people import User
from core.model.question import LinkPlace
from couriers.sending.shown import display_of
from couriers.telegram_bot.courier import TelegramBot
from delivery.api.recipient_pages.answer_page import page_of
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.delivery.test_deliveries import finished
from tests.support.waiting import until

PEOPLE = [{"id": n, "name": f"Person {n}", "contacts": {"telegram": str(100000 + n)}} for n in (1, 2)]
OPTIONS = [{"key": "yes", "text": "Yes"}, {"key": "no", "text": "No"}]
CHOICE = {"kind": "choice", "options": OPTIONS}
IN_AN_HOUR = write_time(datetime.now(UTC) + timedelta(hours=1))
ESCALATE = {"after": "PT30M", "channels": ["sms"]}


def asking(**answer: Any) -> dict[str, Any]:
    return delivery_body(recipients=PEOPLE, channels=["telegram"], answer=answer)


@pytest.fixture
async def where(api: Api, courier: Couriers) -> str:
    """The address of a delivery that asks two people."""
    await courier("telegram")
    made = await api.call("POST", "/v1/deliveries", asking(**CHOICE))
    assert made.status == 202, made
    await finished(api, made.headers["Location"])
    return str(made.headers["Location"])


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("OPTIONS_MISSING", {"kind": "choice"}),
    ("OPTIONS_MISSING", {"kind": "choice", "options": OPTIONS[:1]}),
    ("OPTIONS_NOT_ALLOWED", {"kind": "confirm", "options": OPTIONS}),
    ("OPTIONS_NOT_ALLOWED", {"kind": "date", "options": OPTIONS}),
    ("TOO_MANY_OPTIONS", {"kind": "choice", "options": [{"key": str(n), "text": "a"} for n in range(100)]}),
    ("OPTION_TOO_LONG", {"kind": "choice", "options": [OPTIONS[0], {"key": "b", "text": "b" * 4000}]}),
    ("OPTION_MALFORMED", {"kind": "choice", "options": [OPTIONS[0], {"key": "b", "text": " "}]}),
    ("OUT_OF_RANGE", {"kind": "choice", "options": [OPTIONS[0] | {"places": 0}, OPTIONS[1]]}),
    ("OPTION_REPEATED", {"kind": "choice", "options": [OPTIONS[0], OPTIONS[0]]}),
    ("OPTION_REPEATED", {"kind": "choice", "options": [{"key": "a", "text": "Yes"}, {"key": "b", "text": " yes"}]}),
    ("NEED_NOT_ALLOWED", {"kind": "text", "need": 2}),
    ("NEED_NOT_ALLOWED", {"kind": "confirm", "need": 2, "escalate": ESCALATE}),
    ("OUT_OF_RANGE", {"kind": "confirm", "need": 0}),
    ("ANONYMOUS_NOT_ALLOWED", {"kind": "text", "visible": "anonymous"}),
    ("ANONYMOUS_NOT_ALLOWED", {"kind": "confirm", "visible": "anonymous", "need": 2}),
    ("WRONG_VALUE", {"kind": "confirm", "visible": "secret"}),
    ("TOO_SOON_TO_ASK_AGAIN", {"kind": "confirm", "need": 2, "wave": "PT1S"}),
    ("UNTIL_PAST", {"kind": "confirm", "until": "2020-01-01T00:00:00Z"}),
    ("TIME_MALFORMED", {"kind": "confirm", "until": "tomorrow"}),
    ("WRONG_VALUE", {"kind": "signature"}),
    ("UNKNOWN_FIELD", {"kind": "confirm", "nag": {}}),
    ("REQUIRED", {"kind": "confirm", "remind": {}}),
    ("WAIT_MALFORMED", {"kind": "confirm", "remind": {"after": "soon"}}),
    ("TOO_SOON_TO_ASK_AGAIN", {"kind": "confirm", "remind": {"after": "PT1S"}}),
    ("TOO_SOON_TO_ASK_AGAIN", {"kind": "confirm", "remind": {"after": "PT1H", "every": "PT1S"}}),
    ("TOO_LATE_TO_ASK_AGAIN", {"kind": "confirm", "remind": {"after": "P31D"}}),
    ("TOO_LATE_TO_ASK_AGAIN", {"kind": "confirm", "until": IN_AN_HOUR, "remind": {"after": "PT2H"}}),
    ("TOO_LATE_TO_ASK_AGAIN", {"kind": "confirm", "until": IN_AN_HOUR, "escalate": ESCALATE | {"after": "PT2H"}}),
    ("UNKNOWN_CHANNEL", {"kind": "confirm", "escalate": ESCALATE | {"channels": ["pigeon"]}}),
    ("ESCALATE_CHANNEL_REPEATED", {"kind": "confirm", "escalate": ESCALATE | {"channels": ["telegram"]}}),
]


async def test_a_wrong_question_is_refused_by_its_code(api: Api) -> None:
    before = await api.keys()
    wrong = []
    for (code, answer), path in product(REFUSED, ("/v1/deliveries", "/v1/deliveries/preview")):
        refused = await api.call("POST", path, asking(**answer))
        errors = refused.json.get("errors", ())
        if refused.status != 400 or code not in {refused.code, *(error["code"] for error in errors)}:
            wrong.append((code, answer, path, refused))
        assert await api.keys() == before, (code, answer, path)
    assert wrong == []


async def test_a_question_closes_after_its_delivery_is_due(api: Api) -> None:
    late = asking(kind="confirm", until="2030-01-01T10:00:00Z") | {"deliver_at": "2030-01-01T11:00:00Z", "far": True}
    assert (await api.call("POST", "/v1/deliveries", late)).code == "UNTIL_BEFORE_DUE"
    good = late | {"deliver_at": "2030-01-01T09:00:00Z"}
    made = await api.call("POST", "/v1/deliveries", good)
    moved = await api.call("PATCH", made.headers["Location"], {"deliver_at": "2030-01-01T10:30:00Z", "far": True})
    assert (moved.status, moved.code) == (400, "UNTIL_BEFORE_DUE")


async def test_a_bulk_line_may_ask(api: Api) -> None:
    lines = "".join(json.dumps(one) + "\n" for one in (asking(**CHOICE), asking(kind="choice")))
    made = await api.call(
        "POST", "/v1/deliveries/bulk", lines.encode(), headers={"Content-Type": "application/x-ndjson"}
    )
    accepted, refused = (json.loads(line) for line in made.body.splitlines())
    assert (accepted["status"], refused["code"]) == (202, "OPTIONS_MISSING")


async def test_the_preview_shows_the_buttons_or_says_that_there_are_none(api: Api) -> None:
    channels, display = api.services.core.channels, display_of(object.__new__(TelegramBot))
    await channels.register("telegram", ChannelFacts(100), display=display)
    shown = (await api.call("POST", "/v1/deliveries/preview", asking(**CHOICE))).json["shown"]["telegram"]
    assert [[one["text"], one["data"]] for row in shown["buttons"] for one in row] == [["Yes", "yes"], ["No", "no"]]
    await channels.register("telegram", ChannelFacts(100), display=display_of(object.__new__(TelegramBot)))
    sms = asking(kind="confirm") | {"channels": ["sms"]}
    assert (await api.call("POST", "/v1/deliveries/preview", sms)).json["shown"]["sms"]["not_shown"] == ["answer"]


async def test_answers_are_a_table_by_person_with_totals_and_csv(api: Api, where: str) -> None:
    entered = await api.call("POST", f"{where}/answers", {"recipient": 1, "value": "yes"})
    assert (entered.status, entered.json["result"], entered.json["answer"]["by"]) == (200, "answered", "on_behalf")
    page = (await api.call("GET", f"{where}/answers")).json
    totals = {name: n for name, n in page["answers"].items() if n}
    assert totals == {"answered": 1, "open": 1, "options": {"yes": 1, "no": 0}}
    assert [(one["id"], one["answer"]["state"], one["answer"]["text"]) for one in page["recipients"]] == [
        (1, "answered", "Yes"),
        (2, "open", None),
    ]
    for query, ids in (
        ("answers?state=open", [2]),
        ("answers?option=yes", [1]),
        ("answers?option=no", []),
        ("answers?q=person 2", [2]),
        ("recipients?answer=open", [2]),
    ):
        found = (await api.call("GET", f"{where}/{query}")).json["recipients"]
        assert [one["id"] for one in found] == ids
    rows = (await api.call("GET", f"{where}/answers.csv")).body.decode().splitlines()
    assert rows[0].startswith("recipient,name,state,value,text,at,by,who")
    assert rows[1].startswith("1,Person 1,answered,yes,Yes,")
    history = (await api.call("GET", where)).json
    assert (history["answer"]["kind"], history["answers"]["answered"]) == ("choice", 1)
    assert [one["answer"]["state"] for one in history["recipients"]] == ["answered", "open"]


async def test_a_question_is_closed_by_hand_once(api: Api, where: str) -> None:
    closed = (await api.call("POST", f"{where}/answers:close")).json["answers"]
    assert (closed["silent"], closed["open"]) == (2, 0)
    again = (await api.call("POST", f"{where}/answers:close")).json["answers"]
    assert again["closed_at"] == closed["closed_at"]
    late = (await api.call("POST", f"{where}/answers", {"recipient": 1, "value": "no"})).json
    assert (late["result"], late["answer"]["state"]) == ("late", "late")


async def test_a_closed_question_is_opened_again_until_another_time(api: Api, where: str) -> None:
    await api.call("POST", f"{where}/answers:close")
    refused = await api.call("POST", f"{where}/answers:reopen", {"until": "2020-01-01T00:00:00Z"})
    assert (refused.status, refused.code) == (400, "UNTIL_PAST")
    for _ in range(2):
        opened = (await api.call("POST", f"{where}/answers:reopen", {"until": IN_AN_HOUR})).json["answers"]
        assert (opened["open"], opened["silent"], opened["closed_at"]) == (2, 0, None)
    assert (await api.call("GET", where)).json["answer"]["until"] == IN_AN_HOUR
    await api.call("POST", f"{where}/answers", {"recipient": 1, "value": "no"})
    assert (await api.call("POST", f"{where}/answers:close")).json["answers"]["silent"] == 1
    assert (await api.call("POST", f"{where}/answers:reopen")).json["answers"]["answered"] == 1
    history = (await api.call("GET", where)).json
    assert (history["answer"]["until"], history["answers"]["open"]) == (None, 1)


async def test_a_reminder_of_which_nobody_is_in_need_says_why(api: Api, where: str) -> None:
    for one in (await api.call("GET", f"{where}/answers")).json["recipients"]:
        await api.call("POST", f"{where}/answers", {"recipient": one["id"], "value": "yes"})
    said = {"people": 0, "reason": "all_answered", "detail": "There is nobody to remind: all have answered."}
    assert (await api.call("POST", f"{where}/answers:remind")).json == said


async def test_those_who_have_not_answered_are_reminded_by_hand_three_times(api: Api, where: str) -> None:
    await api.call("POST", f"{where}/answers", {"recipient": 1, "value": "yes"})
    for _ in range(3):
        reminded = await api.call("POST", f"{where}/answers:remind")
        assert (reminded.status, reminded.json) == (200, {"people": 1}), reminded
    assert (await api.call("POST", f"{where}/answers:remind")).code == "REMINDED_ENOUGH"

    async def are_sent() -> Any:
        history = (await api.call("GET", where)).json
        waves = [one["status"] for recipient in history["recipients"] for one in recipient.get("reminders", ())]
        return history if waves == ["sent"] * 3 else None

    history = await until(are_sent)
    assert [one["people"] for one in history["reminders"]["sent"]] == [1, 1, 1]
    assert "reminders" not in history["recipients"][0]
    assert history["counts"]["sent"] == 2
    await api.call("POST", f"{where}/answers:close")
    assert (await api.call("POST", f"{where}/answers:remind")).code == "QUESTION_CLOSED"


async def test_how_a_question_is_asked_again_is_shown_and_counted_before_it_is_sent(api: Api) -> None:
    people = [{"id": n, "contacts": {"telegram": str(100000 + n), "sms": f"+7999111223{n}"}} for n in (1, 2)]
    again = {"remind": {"after": "PT12H", "every": "P1D", "most": 3}, "escalate": ESCALATE}
    body = asking(**CHOICE, **again) | {"recipients": people}
    channels = (await api.call("POST", "/v1/deliveries/preview", body)).json["channels"]
    assert {name: (one["reminders"], one.get("only_unanswered")) for name, one in channels.items()} == {
        "telegram": (6, None),
        "sms": (6, True),
    }
    until = write_time(datetime.now(UTC) + timedelta(hours=40))
    closing = body | {"answer": body["answer"] | {"until": until}}
    channels = (await api.call("POST", "/v1/deliveries/preview", closing)).json["channels"]
    assert {one["reminders"] for one in channels.values()} == {4}
    made = await api.call("POST", "/v1/deliveries", body)
    history = (await api.call("GET", made.headers["Location"])).json
    assert history["answer"]["remind"] == again["remind"]
    assert history["answer"]["escalate"] == ESCALATE
    assert list(history["channels"]) == ["telegram", "sms"]
    assert history["reminders"]["next_at"] > history["released_at"]


async def test_people_are_asked_one_wave_after_another(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    made = await api.call("POST", "/v1/deliveries", asking(**CHOICE, need=1, wave="PT30M"))
    where = made.headers["Location"]

    async def sent() -> Any:
        history = (await api.call("GET", where)).json
        return history if history["counts"]["sent"] == 1 else None

    history = await until(sent)
    assert (history["answer"]["need"], history["answer"]["wave"]) == (1, "PT30M")
    assert [one["answer"]["state"] for one in history["recipients"]] == ["open", "not_asked"]
    await api.call("POST", f"{where}/answers", {"recipient": 1, "value": "yes"})
    await api.call("POST", f"{where}/answers:close")
    history = await finished(api, where)
    assert history["recipients"][1]["outcomes"]["telegram"]["reason"] == "question_closed"
    many = [{"id": n, "contacts": {"telegram": str(n)}} for n in range(1, 1002)]
    refused = await api.call("POST", "/v1/deliveries", asking(**CHOICE, need=1) | {"recipients": many})
    assert (refused.status, refused.code) == (400, "TOO_MANY_IN_WAVES")


async def test_hidden_answers_are_opened_by_an_administrator_with_a_reason(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    made = await api.call("POST", "/v1/deliveries", asking(**CHOICE, visible="hidden"))
    where = made.headers["Location"]
    await api.call("POST", f"{where}/answers", {"recipient": 1, "value": "no"})
    page = (await api.call("GET", f"{where}/answers")).json
    assert (page["question"]["visible"], page["answers"]["options"]) == ("hidden", {"yes": 0, "no": 1})
    assert (page["recipients"][0]["answer"]["state"], page["recipients"][0]["answer"]["value"]) == ("answered", None)
    for path in ("answers?option=no", "answers.csv?option=no"):
        assert "Person 1" not in (await api.call("GET", f"{where}/{path}")).body.decode()
    for path in (where, f"{where}/answers.csv", f"{where}/recipients.csv", f"{where}/events?answers=yes&after=0"):
        if "events" not in path:
            assert ",no," not in (await api.call("GET", path)).body.decode()
    reason = {"Ada-Reason": quote("a complaint of a student")}
    opened = (await api.call("GET", f"{where}/answers", headers=reason)).json["recipients"]
    assert (opened[0]["answer"]["value"], opened[0]["answer"]["text"]) == ("no", "No")
    assert "answered,no,No" in (await api.call("GET", f"{where}/answers.csv", headers=reason)).body.decode()
    logged = (await api.call("GET", "/v1/actions")).json["actions"]
    assert [one["why"] for one in logged if "hidden answers" in one["what"]] == ["a complaint of a student"] * 2


async def test_who_enters_an_answer_learns_no_hidden_one(api: Api, courier: Couriers) -> None:
    """The response had the earlier answer of the person among the revisions, and `same` said what it was."""
    await courier("telegram")
    made = await api.call("POST", "/v1/deliveries", asking(**CHOICE, visible="hidden"))
    where = made.headers["Location"]
    _, secret = await api.services.api_keys.create("a program", ["send", "read"])
    other = api.as_key(secret)
    entered = await other.call("POST", f"{where}/answers", {"recipient": 1, "value": "no"})
    assert (entered.status, entered.json["result"], entered.json["answer"]["value"]) == (200, "answered", None)
    for caller, headers in ((other, {}), (other, {"Ada-Reason": "curious"}), (api, {})):
        for value in ("yes", "no"):
            body = {"recipient": 1, "value": value}
            refused = await caller.call("POST", f"{where}/answers", body, headers=headers)
            assert (refused.status, refused.code, refused.json.get("answer")) == (403, "ANSWERS_HIDDEN", None)
    reason, body = {"Ada-Reason": "she has asked for it"}, {"recipient": 1, "value": "yes"}
    changed = (await api.call("POST", f"{where}/answers", body, headers=reason)).json
    assert (changed["result"], [one["value"] for one in changed["answer"]["revisions"]]) == ("changed", ["no"])
    logged = (await api.call("GET", "/v1/actions")).json["actions"]
    assert [one["why"] for one in logged if "hidden answers" in one["what"]] == ["she has asked for it"]
    await api.services.core.directory.users.create("default", User(1, "Anna"))
    exported = (await api.call("GET", "/v1/users/1/export", headers=reason)).body
    (given,) = [one["answer"] for one in map(json.loads, exported.splitlines()) if "delivery" in one]
    assert (given["value"], given["text"]) == ("yes", "Yes"), "all that is stored of the person"


@pytest.mark.parametrize("kind", ["confirm", "file"])
async def test_nothing_is_entered_on_behalf_of_a_deleted_person(api: Api, courier: Couriers, kind: str) -> None:
    await courier("telegram")
    nowhere = {"id": 3, "contacts": {}}
    body = delivery_body(recipients=[*PEOPLE, nowhere], channels=["telegram"], answer={"kind": kind})
    where = (await api.call("POST", "/v1/deliveries", body)).headers["Location"]
    await finished(api, where)
    await api.services.core.deliveries.of_person.erase("default", "1")
    refused = await api.call("POST", f"{where}/answers", {"recipient": 1, "value": "read"})
    assert (refused.status, refused.code) == (403, "ANSWER_PERSON_DELETED")
    if kind == "confirm":
        for number in (2, 3):
            entered = await api.call("POST", f"{where}/answers", {"recipient": number, "value": "read"})
            assert entered.status == 200
    found = (await api.call("GET", f"{where}/answers?q=1")).json["recipients"]
    assert [(one["id"], one["answer"]["state"]) for one in found] == [(1, "open")]


async def test_an_anonymous_question_is_answered_by_nobody_else(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    made = await api.call("POST", "/v1/deliveries", asking(**CHOICE, visible="anonymous"))
    where = made.headers["Location"]
    refused = await api.call("POST", f"{where}/answers", {"recipient": 1, "value": "no"})
    assert (refused.status, refused.code) == (409, "ANSWERS_ANONYMOUS")
    page = (await api.call("GET", f"{where}/answers")).json
    assert (page["answers"]["withheld"], page["answers"]["options"], page["question"]["change"]) == (True, {}, False)


async def test_who_comes_when_all_places_are_taken_waits_and_the_tables_say_so(
    api: Api, courier: Couriers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.deliveries.histories.recipient_search._PAGE", 1)
    await courier("telegram")
    question = {"kind": "choice", "options": [OPTIONS[0] | {"places": 1}, OPTIONS[1]]}
    where = (await api.call("POST", "/v1/deliveries", asking(**question))).headers["Location"]
    await finished(api, where)
    for number in (1, 2):
        given = (await api.call("POST", f"{where}/answers", {"recipient": number, "value": "yes"})).json["answer"]
        assert given.get("waiting") == (None if number == 1 else True)
    page = (await api.call("GET", f"{where}/answers")).json
    assert (page["answers"]["options"], page["answers"]["waiting"]) == ({"yes": 1, "no": 0}, {"yes": 1})
    assert page["question"]["options"] == question["options"]
    rows = (await api.call("GET", f"{where}/answers.csv")).body.decode().splitlines()
    assert [row.split(",")[11] for row in rows] == ["waiting", "", "yes"]
    told = await api.call("GET", f"{where}/answers.csv?excel&language=ru")
    header, first, second = (row.split(";") for row in told.body.decode("utf-8-sig").splitlines())
    assert header == ["Номер", "Человек", "Состояние", "Ответ", "Комментарий", "Время", "Канал"]
    assert (first[2:5], second[2:5]) == (["с ответом", "Yes", ""], ["с ответом", "Yes (ждёт места)", ""])
    assert re.fullmatch(r"\d\d\.\d\d\.\d{4} \d\d:\d\d", first[5])
    assert answer_totals(page["answers"], page["question"]).endswith("Yes: 1 of 1, 1 waiting  No: 0")


async def test_numbers_have_a_sum_and_a_mean(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    where = (await api.call("POST", "/v1/deliveries", asking(kind="number"))).headers["Location"]
    for number, value in ((1, "2,5"), (2, "4"), (1, "3")):
        await api.call("POST", f"{where}/answers", {"recipient": number, "value": value})
    page = (await api.call("GET", f"{where}/answers")).json
    assert (page["answers"]["sum"], page["answers"]["mean"], page["answers"]["options"]) == (7, 3.5, {})
    assert [one["answer"]["value"] for one in page["recipients"]] == ["3", "4"]
    assert page["recipients"][0]["answer"]["revisions"][0]["value"] == "2.5"
    assert answer_totals(page["answers"], page["question"]) == "answered 2  sum 7  mean 3.5"


async def test_answers_of_another_kind_are_refused(api: Api) -> None:
    where = ""
    for kind, value, code in (("number", "two", "ANSWER_MALFORMED"), ("file", "0" * 32, "FILE_UNKNOWN")):
        where = (await api.call("POST", "/v1/deliveries", asking(kind=kind))).headers["Location"]
        assert (await api.call("POST", f"{where}/answers", {"recipient": 1, "value": value})).code == code
    uploaded = (await api.call("POST", "/v1/files?name=a.pdf", b"pdf", headers={})).json["id"]
    given = await api.call("POST", f"{where}/answers", {"recipient": 1, "value": uploaded})
    assert (given.json["answer"]["value"], given.json["answer"]["text"]) == (uploaded, "a.pdf")
    await api.call("POST", "/v1/users", {"id": 1, "name": "Anna"})
    assert (await api.call("DELETE", "/v1/users/1")).status == 204
    assert (await api.call("GET", f"/v1/files/{uploaded}")).code == "FILE_NOT_FOUND", "it goes with its person"
    assert (await api.call("GET", f"{where}/answers")).json["recipients"][0]["answer"].get("text") is None


async def test_answers_to_what_was_not_asked_are_refused(api: Api, where: str) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body())
    plain = made.headers["Location"]
    for method, path in (
        ("GET", "/answers"),
        ("GET", "/answers.csv"),
        ("POST", "/answers:close"),
        ("POST", "/answers:remind"),
    ):
        assert (await api.call(method, f"{plain}{path}")).code == "QUESTION_NOT_FOUND"
    for body, code in (
        ({"recipient": 1, "value": "maybe"}, "OPTION_UNKNOWN"),
        ({"recipient": 7, "value": "yes"}, "RECIPIENT_NOT_FOUND"),
    ):
        assert (await api.call("POST", f"{where}/answers", body)).code == code


async def test_the_members_of_a_group_chat_stand_behind_the_recipients_with_their_names(
    api: Api, courier: Couriers
) -> None:
    await courier("telegram")
    assert (await api.call("POST", "/v1/users", {"id": 7, "name": "Anna"})).status == 201
    made = await api.call("POST", "/v1/deliveries", asking(**CHOICE))
    where = made.headers["Location"]
    key = HistoryKey.parse(where.rpartition("/")[2])
    asked = await Answers(api.store).find(key.shard, code_of(key), 0)
    member = asked._replace(recipient=StoredRecipient(-1, 7, [0]))
    await Answers(api.store).record(member, "e1", "yes", "press", chat=asked)
    answers = (await api.call("GET", f"{where}/answers?state=answered")).json
    assert [(one["name"], one["member"], one["answer"]["value"]) for one in answers["recipients"]] == [
        ("Anna", True, "yes")
    ]
    assert (answers["answers"]["answered"], answers["answers"]["options"]) == (1, {"yes": 1, "no": 0})
    assert "7,Anna,answered,yes,Yes" in (await api.call("GET", f"{where}/answers.csv")).body.decode()
    for path in ("answers", "recipients", "answers.csv", "recipients.csv", "recipients.csv?language=en"):
        start = (
            f"{where}/{path}{'&' if '?' in path else '?'}{'state' if path.startswith('answers') else 'answer'}=answered"
        )
        found, other = [(await api.call("GET", f"{start}&q={text}")).body.decode() for text in ("ann", "boris")]
        assert ("Anna" in found, "Anna" in other) == (True, False), path
    listed = (await api.call("GET", f"{where}/recipients?answer=answered")).json["recipients"]
    assert [(one["id"], one["name"], one["member"], one["why"]) for one in listed] == [(7, "Anna", True, None)]
    assert len((await api.call("GET", f"{where}/recipients")).json["recipients"]) == 2
    entered = await api.call("POST", f"{where}/answers", {"recipient": 7, "value": "no"})
    assert entered.json["result"] == "changed"


async def test_two_guardians_differ_about_a_child_and_every_table_says_so(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    for number, name in ((7, "Olga"), (8, "Pavel")):
        user = {"id": number, "name": name, "contacts": {"telegram": f"10000{number}"}}
        assert (await api.call("POST", "/v1/users", user)).status == 201
    for child, name in ((161, "Ivan"), (162, "Vera")):
        await api.call("POST", "/v1/users", {"id": child, "name": name, "guardians": [7, 8]})
    body = asking(**CHOICE, consent=True) | {"recipients": [{"id": 161}, {"id": 162}], "audience": "guardians"}
    twice = await api.call("POST", "/v1/deliveries", body | {"to": "guardians"})
    assert (twice.code, twice.json["errors"][0]["path"]) == ("ONE_FIELD_WANTED", "to")
    made = await api.call("POST", "/v1/deliveries", body)
    where = made.headers["Location"]
    await finished(api, where)
    links = AnswerLinks(api.store, api.services.core.answers)
    for number, option in ((0, 1), (1, 0)):
        place = LinkPlace.of(HistoryKey.parse(made.json["history_key"]), "telegram", number, 0, 0)
        token = await AnswerTokens(api.store).sign_link(place)
        key = (await links.open(token)).asked.question.options[option].key
        await links.answer(token, key, f"e{number}")
        assert f"Ваш ответ: Ivan: {'Yes' if number else 'No'}" in page_of(await links.open(token), 0, UTC)
    page = (await api.call("GET", f"{where}/answers")).json
    answers = {one["id"]: one["answer"] for one in page["recipients"]}
    assert (answers[161]["value"], answers[161]["who"], answers[161]["conflict"]) == ("no", "7", True)
    assert [(one["name"], one["text"]) for one in answers[161]["voices"]] == [("Olga", "No"), ("Pavel", "Yes")]
    assert (answers[7]["state"], page["answers"]["answered"], page["answers"]["open"]) == ("open", 1, 1)
    assert page["answers"]["conflicts"] == 1
    for listed in ("answers", "recipients"):
        found = (await api.call("GET", f"{where}/{listed}?conflict=yes")).json["recipients"]
        assert [one["id"] for one in found] == [161], listed
    assert "Ivan (161)  answered: No, conflict (Olga: No, Pavel: Yes)" in re.sub(r"  +", "  ", format_answers(page))
    exported = (await api.call("GET", "/v1/users/7/export", headers={"Ada-Reason": "Olga wants it"})).body
    lines = [json.loads(line) for line in exported.splitlines()]
    (given,) = next(one for one in lines if "delivery" in one)["for_children"]
    assert (given["child"], given["name"], given["value"], given["text"]) == (161, "Ivan", "no", "No")
    assert b"Pavel" not in exported
    table = (await api.call("GET", f"{where}/answers.csv")).body.decode()
    assert "yes,7 no; 8 yes" in table
    people = (await api.call("GET", f"{where}/answers.csv?language=ru")).body.decode()
    assert "No (родители ответили по-разному: Olga: No, Pavel: Yes)" in people
    refused = await api.call("POST", f"{where}/answers", {"recipient": 7, "value": "yes"})
    assert (refused.status, refused.code) == (409, "ANSWER_OF_CHILDREN")
    entered = await api.call("POST", f"{where}/answers", {"recipient": 161, "value": "yes"})
    assert "conflict" not in entered.json["answer"]
    assert "conflicts" not in (await api.call("GET", where)).json["answers"]


@pytest.mark.parametrize(
    ("code", "answer", "to"),
    [
        ("QUESTION_NOT_FOR_GUARDIANS", {"kind": "text"}, "guardians"),
        ("QUESTION_NOT_FOR_GUARDIANS", {"kind": "confirm", "visible": "anonymous"}, "both"),
        ("QUESTION_NOT_FOR_GUARDIANS", {"kind": "confirm", "need": 1}, "guardians"),
        ("CONSENT_MALFORMED", {"kind": "confirm", "consent": True}, "students"),
        (
            "TOO_MANY_OPTIONS",
            {"kind": "choice", "options": [{"key": f"{n}", "text": f"{n}"} for n in range(40)]},
            "both",
        ),
    ],
)
async def test_what_guardians_cannot_answer_is_refused(api: Api, code: str, answer: Any, to: str) -> None:
    await api.call("POST", "/v1/users", {"id": 7, "contacts": {"telegram": "100007"}})
    people = [161, 162, 163]
    for child in people:
        await api.call("POST", "/v1/users", {"id": child, "guardians": [7], "contacts": {"telegram": f"100{child}"}})
    body = asking(**answer) | {"recipients": [{"id": one} for one in people], "to": to, "channels": ["telegram"]}
    refused = await api.call("POST", "/v1/deliveries/preview", body)
    assert (refused.status, refused.code) == (400, code), refused
