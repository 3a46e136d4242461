"""How the command line shows histories."""

from typing import Any

import pytest

from cli.client.format_history import (
    answer_totals,
    format_answer,
    format_content,
    format_event,
    format_exchanges,
    format_outcome,
    format_preview,
    header_lines,
    question_terms,
    recipient_lines,
    verdict_text,
)
from cli.commands.messages.deliveries import sms_in_parts


def test_an_outcome_shows_what_the_channel_could_not_show() -> None:
    outcome = {"status": "sent", "reason": None, "not_shown": ["text_end", "photo menu.png", "file_name a_b.txt"]}
    assert format_outcome("sms", outcome) == "sms sent without text end, photo menu.png, file name a_b.txt"
    assert format_outcome("sms", {"status": "failed", "reason": "blocked"}) == "sms failed (blocked)"


def test_totals_of_a_question_have_the_texts_of_its_options() -> None:
    question = {"options": [{"key": "1", "text": "Приду"}, {"key": "2", "text": "Не приду"}]}
    answers = {"not_asked": 0, "open": 3, "answered": 2, "options": {"1": 2}, "closed_at": None}
    assert answer_totals(answers, question) == "open 3  answered 2  Приду: 2  Не приду: 0"
    anonymous = {**answers, "options": {}, "withheld": True}
    assert answer_totals(anonymous, question) == (
        "open 3  answered 2  anonymous: totals after the closing, from five answers on"
    )
    assert format_outcome("sms", {"status": "sent", "not_shown": ["answer"]}) == "sms sent without the question"


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({"revisions": [{}]}, "answered: Yes, changed once"),
        ({"revisions": [{}], "voices": [("Olga", "Yes"), ("Pavel", "Yes")]}, "answered: Yes (Olga: Yes, Pavel: Yes)"),
        (
            {"revisions": [{}, {}], "voices": [("Olga", "No"), ("Pavel", "Yes")], "conflict": True},
            "answered: Yes, changed once, conflict (Olga: No, Pavel: Yes)",
        ),
    ],
)
def test_the_answer_of_a_second_guardian_is_no_change_of_the_first(more: dict[str, Any], shown: str) -> None:
    voices = [{"name": name, "who": "x", "text": text} for name, text in more.get("voices", ())]
    assert format_answer({"state": "answered", "text": "Yes", **more, "voices": voices}) == shown


def test_a_history_names_the_question_who_answered_for_whom_and_who_replied_in_vain() -> None:
    question = {"kind": "choice", "options": [], "until": "2026-12-01 18:00", "change": False, "late": "count"}
    question |= {"visible": "hidden", "need": 3, "wave": "PT30M", "consent": True}
    question |= {"escalate": {"after": "PT2H", "channels": ["sms"]}}
    history = {
        "id": "1.2",
        "state": "finished",
        "verdict": "of_a_newer_server",
        "origin": "api",
        "text": "Come?",
        "sender": {"id": 7},
        "counts": {"recipients": 1, "reached": 1},
        "answers": {"open": 1, "options": {}, "closed_at": None},
        "answer": question,
        "uninformed": [{"child": 4, "why": "no_guardian"}],
        "refused_replies": 2,
    }
    assert list(header_lines(history))[-4:] == [
        "  4 has no guardian who gets it",
        "question     choice, until 2026-12-01 18:00, the first answer is final, late answers count, hidden, until 3"
        " confirm, the next are asked after PT30M, without an answer after PT2H by sms, one refusal counts",
        "answers      open 1",
        "replies      2 replied, and nobody reads it",
    ]
    usual = {"kind": "confirm", "until": None, "change": True, "late": "keep", "visible": "named"}
    assert question_terms(usual) == "confirm"
    answer = {"state": "answered", "value": "yes", "text": "Yes", "by": "on_behalf", "who": "anna"}
    guardian = {"id": 180, "name": "Olga", "outcomes": {}, "answer": answer}
    guardian |= {"children": [{"id": 181, "name": "Ivan"}, {"id": 182, "name": None}]}
    (line,) = recipient_lines({"recipients": [guardian]})
    assert line == "  Olga (180)  no contact  about Ivan, 182  answered: Yes, entered by anna"


def test_content_is_shown_in_one_line() -> None:
    content = {
        "parse_mode": "HTML",
        "inline": [[{"text": "a", "data": "a"}], [{"text": "b", "url": "https://example.org"}]],
        "attachments": [{"type": "photo", "name": "menu.png"}],
        "reply_to": "12",
    }
    assert format_content(content) == "HTML, 2 buttons, photo, reply to 12"
    assert format_content({"reply": [["a"]]}) == "1 button"
    assert format_content({"reply": []}) == "no keyboard"


@pytest.mark.parametrize(
    ("verdict", "reached", "words"),
    [
        ("all_reached", 4, "every recipient was reached"),
        (
            "all_reached",
            3,
            "3 of 4 recipients were reached; the others have no contact, are blocked or want no messages",
        ),
        ("some_reached", 3, "it is over; some recipients were reached, the others were not"),
        ("of_a_newer_server", 3, "of_a_newer_server"),
    ],
)
def test_the_verdict_claims_that_all_were_reached_only_if_they_were(verdict: str, reached: int, words: str) -> None:
    assert verdict_text({"verdict": verdict, "counts": {"recipients": 4, "reached": reached}}) == words


def test_a_new_time_is_shown_with_the_state() -> None:
    data = {"state": "scheduled", "deliver_at": "2029-11-21T18:00:00Z"}
    assert format_event("state", data) == "scheduled for 2029-11-21T18:00:00Z"
    assert format_event("finished", {"state": "cancelled", "deliver_at": "2029-11-21T18:00:00Z"}) == "cancelled"


def test_recipients_are_a_table_without_the_channels_in_which_nobody_has_a_contact() -> None:
    no_contact = {"status": "no_contact"}
    anna = {"telegram": {"status": "sent"}, "vk": no_contact, "sms": {"status": "failed", "reason": "blocked"}}
    recipients = [
        {"id": 1, "name": "Анна", "outcomes": anna},
        {"id": 2, "outcomes": {"telegram": {"status": "read"}, "vk": no_contact, "sms": no_contact}},
        {"id": 3, "outcomes": {"telegram": no_contact, "vk": no_contact, "sms": no_contact}},
    ]
    assert list(recipient_lines({"recipients": recipients, "next": "cursor"})) == [
        "            telegram    sms",
        "  Анна (1)  sent        failed (blocked)",
        "  2         read        –",
        "  3         no contact",
        "  …",
    ]
    assert list(recipient_lines({"recipients": recipients[2:]})) == ["  3  no contact"]
    asked = [{**one, "answer": {"state": "open"}} for one in recipients]
    assert [line[42:] for line in recipient_lines({"recipients": asked})] == ["", "open", "open", "open"]
    wide = [{**one, "answer": {"state": "answered", "text": "Да " * 15, "note": "позже"}} for one in recipients]
    assert [line.rstrip() for line in recipient_lines({"recipients": wide[:2]})] == [
        f"  Анна (1)  telegram sent, sms failed (blocked)  answered: {'Да ' * 14}Да (позже)",
        f"  2         telegram read                        answered: {'Да ' * 14}Да (позже)",
    ]


def test_an_exchange_has_a_line_for_each_attempt_and_each_call() -> None:
    call = {"method": "DATA", "status": 0, "words": "Timed out", "after_ms": 3, "took_ms": 60_001}
    attempt = {"channel": "email", "contact": 0, "at": "2026-11-27T10:00:00Z", "outcome": "unknown", "reason": ""}
    found = [{**attempt, "detail": "no answer to DATA (Timed out)", "times": 2, "calls": [call]}]
    assert format_exchanges(found).splitlines() == [
        "2026-11-27T10:00:00Z  email unknown, 2 times: no answer to DATA (Timed out)",
        "    DATA  no answer  60001 ms  Timed out",
    ]
    assert format_exchanges([]) == "nothing failed in the last seven days"


def test_a_preview_names_a_quota_that_is_used_up() -> None:
    counts = dict.fromkeys(("no_contact", "person_blocked", "opted_out", "duplicates", "cannot_answer"), 0)
    seen = {"people": 2, **counts, "channels": {"vk": {"people": 2}}, "shown": {}, "moved_from": None}
    shown = "people 2\n  vk  people 2\n"
    assert format_preview({**seen, "quota": {"limit": 4, "allowed": True}}) == f"{shown}nothing was sent"
    used_up = f"{shown}the quota of 4 is used up\nnothing was sent"
    assert format_preview({**seen, "quota": {"limit": 4, "allowed": False}}) == used_up


def test_a_preview_names_who_gets_a_fallback_text() -> None:
    counts = dict.fromkeys(("no_contact", "person_blocked", "opted_out", "duplicates", "cannot_answer"), 0)
    seen: dict[str, Any] = {"people": 9, **counts, "channels": {}, "shown": {}, "moved_from": None, "quota": None}
    first = [{"id": 1, "name": "Anna"}, {"id": 2, "name": None}]
    for people, line in ((2, "fallback text for 2 of 9: Anna, 2"), (3, "fallback text for 3 of 9: Anna, 2, 1 more")):
        assert format_preview({**seen, "fallback": {"people": people, "first": first}}).splitlines()[1] == line


def test_a_preview_says_how_each_channel_answers_a_question() -> None:
    counts = {**dict.fromkeys(("no_contact", "person_blocked", "opted_out", "duplicates"), 0), "cannot_answer": 1}
    channels = {"telegram-bot": {"people": 9, "addresses": 9, "reminders": 27}, "sms": {"people": 1}}
    channels |= {"email": {"people": 2, "only_unanswered": True}, "vk": {"people": 0}}
    shown = {"telegram-bot": {"answer_by": "press", "not_shown": []}, "sms": {"not_shown": ["answer"]}}
    shown |= {name: {"answer_by": "link", "not_shown": []} for name in ("email", "vk")}
    seen = {"people": 12, **counts, "channels": channels, "shown": shown, "moved_from": None, "quota": None}
    assert format_preview(seen).splitlines()[5:] == [
        "  telegram-bot  answers by press   at most 27 reminders",
        "  sms           nobody can answer",
        "  email         answers by link    only without an answer",
        "nothing was sent",
    ]


def test_the_parts_of_an_sms_are_named_if_anybody_gets_one() -> None:
    history = {"text": "a" * 161, "counts": {"recipients": 3}, "channels": {"sms": {"skipped": 1, "no_contact": 1}}}
    assert "has 2 parts" in sms_in_parts(history)
    nobody = {**history, "channels": {"sms": {"skipped": 2, "no_contact": 1}}}
    assert [sms_in_parts(one) for one in (nobody, {**history, "text": "a"}, {**history, "channels": {}})] == [""] * 3
