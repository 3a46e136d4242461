"""Mistakes that YAML and the types of fields do not show: each is one message that says what to write instead."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from scenarios.actions import Actions, own_actions
from scenarios.bot import new_bot
from scenarios.check import check
from scenarios.loader import Problem
from tests.scenarios.loader.folder import Files, with_russian, write
from tests.support.paths import ROOT

FILE = "scenarios/menu.yaml"
TRIGGERS = 'text: {"*": start}\n'
SENT = "{type: send, text: x}"
LINK = "{type: invite_link, member_limit: 1}"


def problems_of(folder: Path, files: Files) -> Sequence[Problem]:
    folder = write(folder, {"triggers.yaml": TRIGGERS, **files})
    return with_russian(check(folder, {}, Actions(own_actions())).problems)


def of_actions(folder: Path, *actions: str) -> Sequence[Problem]:
    """The problems of a scenario with these actions, each in a line of its own from line 3 on."""
    return problems_of(folder, {FILE: "start:\n  actions:\n" + "".join(f"    - {one}\n" for one in actions)})


@pytest.mark.parametrize(
    ("actions", "line", "code", "words"),
    [
        (["{type: job, limit: 0}"], 3, "error WRONG_TYPE", "whole number above 0"),
        (
            [LINK, "{type: send, text: x, chain: failed, when: {error: {rule: equals, value: x}}}"],
            4,
            "warning ERROR_COMPARED",
            "compare {code}",
        ),
        (["{type: send, text: x, inline: [[{A: 'strat?12'}]]}"], 3, "error UNKNOWN_SCENARIO", "did you mean start?"),
        (["{type: send, text: x, inline: [[{A: 'start?" + "1" * 60 + "'}]]}"], 3, "error BUTTON_TOO_LONG", "64 bytes"),
        (["{type: send, text: 'Hi {usr_name}'}"], 3, "error UNKNOWN_PLACEHOLDER", "did you mean username?"),
        (["{type: send, text: 'Hi {usеrname}'}"], 3, "error UNKNOWN_PLACEHOLDER", "Letter 3 is the Cyrillic"),
        (["{type: send, text: '{frist_name|fallback:x}'}"], 3, "error UNKNOWN_PLACEHOLDER", "did you mean first_name?"),
        (["{type: send, text: '{x|fallback:{evnt_text}}', x: 1}"], 3, "error UNKNOWN_PLACEHOLDER", "mean event_text?"),
        (["{type: send, text: x, inline: [['{usr_name}']]}"], 3, "error UNKNOWN_PLACEHOLDER", "did you mean username?"),
        (["{type: send, text: '{atachments[0].type}'}"], 3, "error UNKNOWN_PLACEHOLDER", "did you mean attachments?"),
        (["{type: send, text: 'Hi {colour}'}"], 3, "warning UNKNOWN_PLACEHOLDER", "neither the event nor an action"),
        ([LINK, "{type: send, text: '{invite_lnk}', chain: any}"], 4, "error UNKNOWN_PLACEHOLDER", "mean invite_link?"),
        (["{type: request}", "{type: send, text: '{request_id}'}"], 4, "error UNKNOWN_PLACEHOLDER", "write chain:"),
        ([LINK, "{type: send, text: '{error|fallback:}'}"], 4, "error UNKNOWN_PLACEHOLDER", "write chain: failed"),
        (["{type: send, text: 'Hi {{first_name}}'}"], 3, "warning DOUBLE_BRACES", "write {first_name} with single"),
        (
            ["{type: send, text: 'Hi {{groups}}', personal: true, to: {people: true}}"],
            *(3, "warning DOUBLE_BRACES", r"write \{\{groups\}\} for the value of the recipient"),
        ),
        (["{type: send, text: 'Hi {first_name, welcome'}"], 3, "error BRACE_UNCLOSED", "write } behind the name"),
        (["{type: send, text: 'Hi {frist_name'}"], 3, "error BRACE_UNCLOSED", "{frist_name: this brace"),
        (["{type: send, text: 'Id: {user_id.'}"], 3, "error BRACE_UNCLOSED", "{user_id: this brace"),
        (["{type: send, text: 'a {colour'}"], 3, "warning BRACE_UNCLOSED", "never closed"),
        (["{type: send, text: 'Hi first_name}!'}"], 3, "error BRACE_UNOPENED", "write { before the name"),
        (["{type: validator, rules: {usr_name: [{rule: empty}]}}"], 3, "error UNKNOWN_RULE_FIELD", "mean username?"),
        (["{type: validator, rules: {phone: [{rule: empty}]}}"], 3, "warning UNKNOWN_RULE_FIELD", "'phone'"),
        (["{type: send}"], 3, "warning EMPTY_SEND", "neither a text nor a file, so it always fails"),
        (["{type: send, text: ' ', inline: [[{Back: start}]]}"], 3, "warning EMPTY_SEND", "write text: …"),
        (["{type: request_management}", "{type: send}"], 4, "warning EMPTY_SEND", "write chain: completed"),
        (["{type: send, text: '<b>Hi'}"], 3, "error MARKS_BROKEN", "as HTML: character 1: <b> is never closed"),
        (["{type: send, text: 'Hi <b>{first_name}'}"], 3, "error MARKS_BROKEN", "character 4: <b> is never closed"),
        (["{type: send, text: '1 < 2'}"], 3, "error MARKS_BROKEN", "a < that begins no mark is written &lt;"),
        (["{type: send, text: a.b, parse_mode: MarkdownV2}"], 3, "error MARKS_BROKEN", "as MarkdownV2: character 2"),
        (["{type: ask, text: '1 < 2'}"], 3, "error MARKS_BROKEN", "a < that begins no mark is written &lt;"),
        (["{type: ask, text: x, inline: [[{'': start}]]}"], 3, "error BUTTON_MALFORMED", "a button has a text"),
        (["{type: order, text: '<b>Hi'}"], 3, "error MARKS_BROKEN", "<b> is never closed"),
        (["{type: ask, text: " + "x" * 4097 + "}"], 3, "warning TEXT_TOO_LONG", "4097 characters, but a"),
        (["{type: ask, text: x, hint: 'at least 1 < 2'}"], 3, "error MARKS_BROKEN", "a < that begins no mark"),
        (["{type: send, text: x, additional_text: '</i>'}"], 3, "error MARKS_BROKEN", "</i> closes no mark"),
        (['{type: send, text: "a\\n\\nb <i>"}'], 3, "error MARKS_BROKEN", "line 3, character 3: <i> is never closed"),
        ([LINK, "{type: send, text: '<i>{error}', chain: any}"], 4, "warning MARKS_BROKEN", "<i> is never closed"),
        (["{type: send, text: " + "x" * 4097 + "}"], 3, "warning TEXT_TOO_LONG", "4097 characters, but a"),
        (["{type: send, attachment: A, text: " + "x" * 1025 + "}"], 3, "warning TEXT_TOO_LONG", "a file shows 1024"),
        (["{type: send, text: x, inline: [[{'': start}]]}"], 3, "error BUTTON_MALFORMED", "a button has a text"),
        (["{type: send, text: x, reply: [" + "['{user_id}']," * 101 + "]}"], 3, "error TOO_MANY_BUTTONS", "most 100"),
        (["{type: send, text: x, reply: [[{Menu: start}]]}"], 3, "error WRONG_TYPE", "has request_contact behind"),
    ],
)  # fmt: skip
def test_a_mistake_in_what_an_action_says_is_one_message(
    tmp_path: Path, actions: list[str], line: int, code: str, words: str
) -> None:
    (problem,) = of_actions(tmp_path, *actions)
    assert (problem.file, problem.line, f"{problem.severity} {problem.code}") == (FILE, line, code)
    assert words in problem.message


ASK, SLOW = "{type: ask, text: x}", "{type: http_request, url: 'https://example.com'}"
ANSWER, LATE_ANSWER = "{type: answer_press, text: x}", "{type: answer_press, text: x, chain: any}"


@pytest.mark.parametrize("waiting", [ASK, SLOW])
def test_an_answer_to_a_press_behind_an_action_that_waits_comes_too_late(tmp_path: Path, waiting: str) -> None:
    send = "{type: send, text: x, chain: any}"
    (problem,) = of_actions(tmp_path, waiting, send, LATE_ANSWER)
    assert (problem.line, problem.severity, problem.code) == (5, "warning", "ANSWER_TOO_LATE")
    assert f"while {waiting[7:].split(',')[0]} in line 3 waits" in problem.message
    for actions in ((ANSWER, waiting), (waiting, ANSWER), (send, LATE_ANSWER), (waiting, send, ANSWER, LATE_ANSWER)):
        assert of_actions(tmp_path, *actions) == ()


TO_GROUP, ELSE = "{type: send, to: {group: A}, text: x}", "{type: send, text: no, chain: failed}"


@pytest.mark.parametrize(
    ("actions", "line"),
    [
        ([TO_GROUP, "{type: send, text: '{reached}', chain: true}"], 4),
        ([TO_GROUP, "{type: send, text: '{reached}', chain: [completed, unknown]}"], 4),
        (
            [TO_GROUP, "{type: user, user_state: '', chain: any}", "{type: send, text: '{reached}', chain: completed}"],
            5,
        ),
        (
            [
                "{type: send, text: x, when: {user_id: {rule: equals, value: 7}}}",
                "{type: send, text: '{reached}', chain: drop}",
            ],
            4,
        ),
        (["{type: ask, text: x}", "{type: send, text: '{answer}', chain: any}"], 4),
        (["{type: ask, text: x, step: q}", SENT, "{type: send, text: '{answer}', after: q, chain: any}"], 5),
        (["{type: qr_code, qr_text: x}", "{type: user, user_state: '{qr_file}', chain: [completed, failed]}"], 4),
    ],
)
def test_a_result_that_a_failure_keeps_away_is_a_warning(tmp_path: Path, actions: list[str], line: int) -> None:
    """People read `{reached} people have got it.` when the message to the group was refused."""
    found = [one for one in of_actions(tmp_path, *actions) if one.code == "RESULT_MAY_BE_MISSING"]
    assert [(one.line, str(one.severity)) for one in found] == [(line, "warning")]
    assert "|fallback:…}" in found[0].message


@pytest.mark.parametrize(
    "actions",
    [
        [TO_GROUP, "{type: send, text: '{reached}', chain: completed}"],
        [TO_GROUP, "{type: send, text: '{reached|fallback:0} {error|fallback:}', chain: true}"],
        [TO_GROUP, ELSE, "{type: send, text: '{reached}', chain: drop}"],
        [TO_GROUP, "{type: request, chain: completed}", "{type: send, text: '{reached}', chain: completed}"],
        ["{type: settings_link}", "{type: send, text: '{code} {wait}', chain: failed}"],
        ["{type: job, operation: show, kind: x}", "{type: send, text: '{job_refusal}', chain: failed}"],
        ["{type: send, text: x, chain_drop: [failed, unknown]}", "{type: send, text: '{reached}', chain: true}"],
        [TO_GROUP, f"{ELSE[:-1]}, chain_drop: completed}}", "{type: send, text: '{reached}', chain: true}"],
    ],
)  # fmt: skip
def test_a_result_that_is_there_is_no_warning(tmp_path: Path, actions: list[str]) -> None:
    assert [one for one in of_actions(tmp_path, *actions) if one.code == "RESULT_MAY_BE_MISSING"] == []


@pytest.mark.parametrize("kind", ["job, operation: start, kind: x", "request_management", "promo_management"])
@pytest.mark.parametrize("said", ["send", "ask"])
def test_a_text_that_is_never_shown_is_a_warning(tmp_path: Path, kind: str, said: str) -> None:
    """An author wrote "The watch is on." after a job, and people read the job's state."""
    (problem,) = of_actions(tmp_path, f"{{type: {kind}}}", f"{{type: {said}, text: On., chain: completed}}")
    assert (problem.line, problem.code) == (4, "TEXT_REPLACED")
    for chain in ("chain: true", "chain: failed"):
        assert of_actions(tmp_path, f"{{type: {kind}}}", f"{{type: {said}, text: No., {chain}}}") == ()
    added = "{type: send, additional_text: On., chain: completed}"
    assert of_actions(tmp_path, f"{{type: {kind}}}", added) == ()


VARIABLE = "{type: user, placeholder: true, user_state: '', greeting: 'Hi {first_name}'}"


@pytest.mark.parametrize(
    "actions",
    [
        ["{type: send, text: '{colour|fallback:red} {colour|exists}'}"],
        ["{type: send, text: '{attachments.0.type} {attachments[-1].file_id} {event_text|tags}'}"],
        ['{type: send, text: \'JSON {"user": {"id": 1}} \\{colour} {lang_{first_name}}\'}'],
        ["{type: send, text: '{colour}', placeholder: false}"],
        ["{type: user, user_state: '{colour}', placeholder: false}"],
        ["{type: validator, expire: 1d, note: x}", "{type: send, text: '{note} {expire_seconds}', chain: any}"],
        [LINK, "{type: send, text: '{invite_link}', chain: completed}"],
        [LINK, "{type: send, text: x, chain: any}", "{type: send, text: '{error}', chain: failed}"],
        [VARIABLE, "{type: send, text: '{greeting}', chain: completed}"],
        ["{type: validator, phone: x}", "{type: validator, rules: {phone: [{rule: empty}]}, chain: any}"],
        ["{type: request_management}", "{type: send, chain: any, inline: [[{Back: start}]]}"],
        ["{type: send, attachment: AgACAgIAAxkBAAI}"],
        ["{type: send, text: x, inline: [[{A: start?12}, {B: 'start?{user_id}'}]]}"],
        ["{type: send, text: '<b>{first_name}</b> <a href=\"{event_text}\">x</a> 1 &lt; 2'}"],
        ["{type: send, text: '<b>Hi', additional_text: '</b>'}"],
        ["{type: send, text: '" + "{event_text}" * 1000 + "'}"],
    ],
)
def test_what_the_event_the_chain_and_the_action_itself_have_is_no_mistake(tmp_path: Path, actions: list[str]) -> None:
    assert of_actions(tmp_path, *actions) == ()


SPLICED = """
start:
  actions:
    - {type: validator, word: '{event_text}', placeholder: true}
    - {type: scenario, value: part}
    - {type: send, text: '{word} {request_id} {invite_link}', chain: completed}
    - {type: scenario, value: [part, '{event_text}'], chain: completed}
part:
  actions:
    - {type: send, text: '{word}', chain: true}
    - {type: request, chain: true}
    - {type: send, text: '{word} {request_id}', chain: completed}
"""


def test_what_a_scenario_sees_comes_from_those_that_splice_it_in_and_goes_back_to_them(tmp_path: Path) -> None:
    assert problems_of(tmp_path, {FILE: SPLICED}) == ()


def test_an_action_without_a_chain_sees_nothing_of_a_scenario_spliced_in_before(tmp_path: Path) -> None:
    files = {FILE: SPLICED.replace("{invite_link}', chain: completed", "{invite_link}'")}
    assert [(problem.line, problem.code) for problem in problems_of(tmp_path, files)] == [
        (6, "UNKNOWN_PLACEHOLDER")
    ] * 2


def test_after_an_action_that_is_not_known_any_name_may_be_there(tmp_path: Path) -> None:
    found = of_actions(tmp_path, "{type: card}", "{type: send, text: '{usr_name}', chain: any}")
    assert [problem.code for problem in found] == ["UNKNOWN_ACTION"]


ENTRIES = "one: {actions: [{type: user, user_state: '{user_id}'}]}\ntwo: {actions: [{type: send, text: x}]}\n"


@pytest.mark.parametrize(
    ("triggers", "line", "column", "words"),
    [
        ("text:\n  exact: {/start: one, /START: two}\n", 2, 24, "'/START' is the same as '/start' in line 2, for"),
        ("text:\n  exact: {'/start ': one, /start: two}\n", 2, 27, "write one entry for both"),
        ("callback:\n  exact: {🏠 Меню: one, меню: two}\n", 2, 24, "only letters and digits count"),
        ("text:\n  state: {asked: one, Asked: two}\n", 2, 23, "'Asked' is the same as 'asked'"),
        ("text:\n  starts_with: {/st: one, /start: two}\n", 2, 27, "'/start' begins with '/st' in line 2"),
        ("text:\n  contains:\n    help: one\n    Helpful: two\n", 4, 5, "'Helpful' contains 'help' in line 3"),
        ("new_member:\n  creator: {anna: one, '@Anna': two}\n", 2, 24, "'@Anna' is the same as 'anna'"),
        ("text:\n  exact: {a: {scenario: one, from_chat: all}, A: two}\n", 2, 47, "'A' is the same as 'a'"),
    ],
)  # fmt: skip
def test_an_entry_that_never_fires_is_an_error(
    tmp_path: Path, triggers: str, line: int, column: int, words: str
) -> None:
    (problem,) = problems_of(tmp_path, {FILE: ENTRIES, "triggers.yaml": triggers})
    assert (problem.file, problem.line, problem.column, problem.code) == (
        *("triggers.yaml", line, column),
        "TRIGGER_NEVER_FIRES",
    )
    assert words in problem.message


@pytest.mark.parametrize(
    "triggers",
    [
        "text: {exact: {a: {scenario: one, from_chat: 5}, A: two}}\n",
        "text: {exact: {a: one, A: {scenario: two, forward_enabled: true}}}\n",
        "text: {starts_with: {/start: one, /st: two}}\n",
        "text: {exact: {a: one}, contains: {a: two}}\n",
        "text: {regex: {a: one, A: two}}\n",
    ],
)
def test_an_entry_that_may_fire_is_no_mistake(tmp_path: Path, triggers: str) -> None:
    assert problems_of(tmp_path, {FILE: ENTRIES, "triggers.yaml": triggers}) == ()


def test_a_button_trigger_without_letters_is_an_error(tmp_path: Path) -> None:
    triggers = "text: {exact: {a: [one, two]}}\ncallback: {contains: {🏠: one}}\n"
    (problem,) = problems_of(tmp_path, {FILE: ENTRIES, "triggers.yaml": triggers})
    assert (problem.line, problem.code) == (2, "EMPTY_TRIGGER")


LOST = """
start: {actions: [{type: send, text: x, inline: [[{Next: pressed}]]}, {type: scenario, value: spliced}]}
pressed: {}
spliced: {}
lost: {actions: [{type: send, text: x, inline: [[{Other: island}]]}]}
island: {actions: [{type: scenario, name: [lost]}]}
"""


def test_a_scenario_to_which_no_trigger_leads_is_a_warning(tmp_path: Path) -> None:
    found = problems_of(tmp_path, {FILE: LOST})
    assert [(one.severity, one.line, one.code) for one in found] == [
        ("warning", line, "NEVER_STARTED") for line in (5, 6)
    ]
    assert "nothing starts menu.lost" in found[0].message


@pytest.mark.parametrize(
    ("files", "codes"),
    [
        ({FILE: LOST.replace("Next: pressed", "Next: '{event_text}'")}, []),
        ({FILE: LOST, "settings.yaml": "send: {inline: [[{Lost: lost}]]}\n"}, []),
        ({FILE: LOST, "triggers.yaml": "txt: {a: start}\n"}, ["UNKNOWN_SECTION"]),
        ({FILE: LOST, "triggers.yaml": "text: {exact: {a: strat, b: start}}\n"}, ["UNKNOWN_SCENARIO"]),
        ({FILE: LOST, "triggers.yaml": ""}, ["NEVER_STARTED"]),
        (
            {FILE: LOST.replace("type: send, text: x, inline: [[{Next", "type: sned, inline: [[{Next")},
            ["UNKNOWN_ACTION"],
        ),
    ],
)
def test_nothing_is_called_lost_that_may_start(tmp_path: Path, files: Files, codes: list[str]) -> None:
    """One mistake in triggers.yaml brings no warnings about the scenarios that it would start."""
    assert [problem.code for problem in problems_of(tmp_path, files)] == codes


LATER = """
start:
  description: Hello
  trigger: [{event_type: message, event_text: /start}]
  step: [{action: send_message, params: {text: Hello}, transition: [{action_result: any, transition_action: stop}]}]
nightly: {schedule: 0 4 * * *, step: [{action: delete_storage, params: {group_key: a}}]}
"""


def test_the_dialect_of_coreness_1_is_named_once_with_what_to_do(tmp_path: Path) -> None:
    """68 scenarios were called a bot with 0 actions and 0 errors."""
    files = {"scenarios/a.yaml": LATER, "scenarios/b/c.yaml": LATER, "triggers.yaml": "text: {exact: {/go: a.start}}\n"}
    (problem,) = problems_of(tmp_path, files)
    assert (problem.file, problem.line, problem.column) == ("scenarios/a.yaml", 2, 1)
    assert (problem.severity, problem.code) == ("error", "LATER_DIALECT")
    assert problem.message.startswith(
        "4 scenarios in the dialect of Coreness 1.x (trigger, step), which Ada does not read"
    )
    assert "## From Coreness 1.x" in (ROOT / "docs" / "scenarios-coreness.md").read_text()


@pytest.mark.parametrize("example", ["examples/school-bot", "examples/job-hunter/bot"])
def test_the_examples_have_no_mistakes(example: str) -> None:
    assert check(ROOT / example, {}).problems == ()


def test_the_first_bot_of_the_guide_has_no_mistakes(tmp_path: Path) -> None:
    new_bot.write(tmp_path / "bot")
    assert check(tmp_path / "bot", {}).problems == ()


SCHEDULED = {"schedule.yaml": "r: {each: Monday 8:00, for: people, scenario: menu.start}\n", "triggers.yaml": ""}
FOR_NOBODY = {"schedule.yaml": "r: {each: Monday 8:00, scenario: menu.start}\n", "triggers.yaml": ""}
OTHER = {"scenarios/b.yaml": "other: {actions: [{type: typing}]}\n"}
CHOICE = {"variables.yaml": "person: {c: {type: choice, options: [a, b]}}\n"}
NUMBER = {"variables.yaml": "person: {n: number, lang: text}\n"}
ASKS = "{type: ask, text: A?}"
ELSE_IF = "{type: send, text: x, chain: any, when: {%s}}"
PRESSES = {"triggers.yaml": "text: {exact: {Status: start}}\ncallback: {exact: {Other: start}, '*': start}\n"}
HTTP = "{type: http_request, url: 'https://a.example'}"
NOT_SILENT: list[tuple[list[str], Files, int, str, str]] = [
    ([ASKS, ASKS], {}, 4, "error ASKED_AT_ONCE", "line 3"),
    ([ASKS, "{type: send, text: x}", ASKS], {}, 5, "error ASKED_AT_ONCE", "write chain: completed"),
    ([HTTP, SENT.replace("}", ", chain: completed}"), SENT.replace("}", ", chain: failed}")], {}, 5,
     "warning FAILURE_NOT_TOLD", "chain: [failed, drop]"),
    (["{type: send, text: x, to: 7, channels: [smss]}"], {}, 3, "error UNKNOWN_CHANNEL", "did you mean sms?"),
    (["{type: send, text: x, to: {id: 7, contacts: {smss: 1}}}"], {}, 3, "error UNKNOWN_CHANNEL", "smss"),
    (["{type: send, text: x, channels: [sms]}"], {}, 3, "warning CHANNELS_WITHOUT_TO", "only with `to`"),
    (["{type: send, text: x, to: 'sms:+7'}"], {}, 3, "error WRONG_TYPE", "but this is 'sms:+7'"),
    (["{type: send, text: x, to: 'a:b:c,'}"], {}, 3, "error WRONG_TYPE", "42=sms:+79990000001"),
    (["{type: send, text: x}"], {"bot.yaml": "timezone: Europe/Moskow\n"}, 1,
     "error UNKNOWN_TIMEZONE", "Europe/Moscow?"),
    (["{type: send, text: x}"], {"bot.yaml": "language: fr\n"}, 1,
     "error UNKNOWN_LANGUAGE", "one of en, ru"),
    (["{type: ask, text: A?, dates: {from: soon, to: 3d}}"], {}, 3, "error WRONG_TYPE", "from: today"),
    (["{type: ask, text: A?, times: {from: 8:00, every: 1h}}"], {}, 3, "error WRONG_TYPE", "to: 20:00"),
    (["{type: send, text: x, to: {people: yes please}}"], {}, 3, "error WRONG_TYPE", "{people: true}"),
    (["{type: send, text: x, to: {people: true, group: A}}"], {}, 3, "error WRONG_TYPE", "no 'group'"),
    (["{type: send, text: x, to: {people: true, when: {person.m: {rule: empty}}}}"], NUMBER, 3,
     "error UNKNOWN_VARIABLE", "did you mean person.n?"),
    (["{type: send, text: x, delay: 1d, deliver_at: 2999-01-01 10:00}"], {}, 3, "error TWO_TIMES", "remove one"),
    (["{type: send, text: x, deliver_at: 2020-01-01 10:00}"], {}, 3, "error IN_THE_PAST", "is over"),
    (["{type: send, text: x, delay: 1d, tag: no-such}", "{type: cancel, tag: nosuch}"], {}, 4,
     "error TAG_NOT_SET", "did you mean no-such?"),
    (["{type: ask, text: A?, save: person.n, options: [1, x]}"], NUMBER, 3, "error OPTION_NOT_STORABLE", "'x' is not"),
    (["{type: send, text: '{event_text}'}"], SCHEDULED, 3, "error NOT_OF_SCHEDULE", "no event_text"),
    (["{type: send, text: 'Hi {first_name}'}"], SCHEDULED, 3, "error NOT_OF_SCHEDULE", "no first_name"),
    (["{type: send, text: x, message_reply: true}"], SCHEDULED, 3, "error NOT_OF_SCHEDULE", "message_reply"),
    (["{type: send, text: '{callback_data}'}"], {}, 3, "warning NOT_OF_TRIGGER", "of the kind text"),
    (["{type: send, text: '{answer_value}', when: {user_id: {rule: not_empty}}}"], {}, 3,
     "warning NOT_OF_TRIGGER", "no answer_value"),
    (["{type: send, text: '{event_text}', inline: [[{Again: start}]]}"], {}, 3,
     "warning NOT_OF_TRIGGER", "of the kind callback"),
    ([ASKS, "{type: scenario, value: other}"], {"scenarios/b.yaml": f"other: {{actions: [{ASKS}]}}\n"}, 4,
     "error ASKED_AT_ONCE", "line 3"),
    (["{type: send, text: x, to: 'telegrm:5'}"], {}, 3, "warning UNKNOWN_CHANNEL", "did you mean telegram?"),
    (["{type: send, text: x, to: {id: 7, contacts: {sms: abc}}}"], {}, 3, "error WRONG_TYPE", "'sms:abc'"),
    (["{type: send, text: x, required_role: '{first_name}'}"], {}, 3, "error WRONG_TYPE", "not replaced here"),
    (["{type: send, text: x, group_admin: '{is_bot}'}"], {}, 3, "error WRONG_TYPE", "not replaced here"),
    (["{type: request, request_info: '{usr_name}'}"], {}, 3, "warning UNKNOWN_PLACEHOLDER", "did you mean username?"),
    (["{type: send, text: x}"], FOR_NOBODY, 3, "error NOT_OF_SCHEDULE", "write `to` here, or `for: people`"),
    (["{type: branch, cases: [{if: {user_id: {rule: empty}}, scenario: other}]}"], OTHER, 3,
     "error WRONG_TYPE", "a case has no 'if', only when"),
    (["{type: send, text: x, when: {user_id: {rule: equals, is: 5}}}"], {}, 3, "error WRONG_TYPE", "no 'is', only"),
    (["{type: set, variables: {person.l: {append: '{user_id}', times: one}}}"],
     {"variables.yaml": "person: {l: list}\n"}, 3, "error WRONG_TYPE", "a whole number from 1"),
    (["{type: send, text: x, to: people}"], {}, 3, "error WRONG_TYPE", "{people: true}"),
    (["{type: ask, text: A?, row: x}"], {}, 3, "error NEEDS_FIELD", "without `form`"),
    (["{type: ask, text: A?, field: x}"], {}, 3, "error NEEDS_FIELD", "without `form`"),
    (["{type: send, text: x, when: {any: [{person.c: {rule: equals, value: c}}, {person.c: []}]}}"], CHOICE, 3,
     "warning NOT_AN_OPTION", "'c' is none of a, b"),
    (["{type: branch, cases: [{when: {person.c: [{rule: in_list, value: [a, d]}]}, scenario: other}]}"],
     CHOICE | OTHER, 3, "warning NOT_AN_OPTION", "'d' is none of a, b"),
    ([HTTP, ELSE_IF % "code: {rule: equals, value: NO_RESPONS}"], {}, 4, "error NOT_AN_OPTION", "mean NO_RESPONSE?"),
    ([HTTP, ELSE_IF % "code: {rule: in_list, value: [NO_RESPONSE, MY_CODE]}"], {}, 4, "warning NOT_AN_OPTION",
     "'MY_CODE' is no code"),
    ([SENT, ELSE_IF % "verdict: {rule: not_equals, value: all_reachd}"], {}, 4, "error NOT_AN_OPTION", "all_reached?"),
    (["{type: validator, rules: {channel: [{rule: equals, value: smss}]}}"], {}, 3, "error NOT_AN_OPTION", "mean sms?"),
    (["{type: for_each, items: a, scenario: other, collect: [reachd]}"],
     {"scenarios/b.yaml": f"other: {{actions: [{SENT}]}}\n"}, 3, "error UNKNOWN_RESULT", "did you mean reached?"),
    (["{type: ask, text: A?, dates: {from: 14d, to: 1d}}"], {}, 3, "error WRONG_TYPE", "one choice from `from`"),
    (["{type: ask, text: A?, dates: {from: 2026-12-10, to: 2026-12-01}}"], {}, 3, "error WRONG_TYPE", "one choice"),
    (["{type: ask, text: A?, dates: {to: 400d}}"], {}, 3, "error WRONG_TYPE", "at most 366"),
    (["{type: ask, text: A?, times: {from: 20:00, to: 8:00}}"], {}, 3, "error WRONG_TYPE", "at least one choice"),
    (["{type: ask, text: A?, times: {from: 8:00, to: 20:00, every: 10s}}"], {}, 3, "error WRONG_TYPE", "choice"),
    (["{type: ask, text: A?, rules: [{rule: between, value: [5, 1]}]}"], {}, 3, "error WRONG_TYPE", "lower one first"),
    (["{type: ask, text: A?, rules: [{rule: at_least, value: ten}]}"], {}, 3, "error WRONG_TYPE", "a number or a date"),
    (["{type: choose_addressees, kinds: [groups]}"], {}, 3, "error WRONG_TYPE", "did you mean group?"),
    (["{type: choose_addressees, words: {dnoe: Ready}}"], {}, 3, "error WRONG_TYPE", "did you mean done?"),
    (["{type: order, text: x, answer: confirm, until: tomorow}"], {}, 3, "error WRONG_TYPE", "a time as people write"),
    (["{type: order, text: x, until: tomorrow 9:00}"], {}, 3, "error NEEDS_FIELD", "`until` does nothing without"),
    (["{type: order, text: x, channels: [smss]}"], {}, 3, "error UNKNOWN_CHANNEL", "did you mean sms?"),
    (["{type: ask, text: A?, inline: [[{Stop: strat}]]}"], {}, 3, "error UNKNOWN_SCENARIO", "did you mean start?"),
    (["{type: ask, text: A?, options: [a], inline: [[a, b]]}"], {}, 3, "warning UNANSWERED_BUTTON", "the button 'b'"),
    (["{type: ask, text: A?, answer: photo, inline: [[Skip]]}"], PRESSES, 3, "warning UNANSWERED_BUTTON", "'Skip'"),
    (["{type: send, text: x, inline: [[Oher]]}"], PRESSES, 3, "warning UNANSWERED_BUTTON", "the button 'Oher'"),
    (["{type: send, text: x, reply: [[Staus]]}"], PRESSES, 3, "warning UNANSWERED_TEXT", "did you mean Status?"),
    (["{type: ask, text: A?, stays_open_for: [/help, /hlep]}"], {}, 3, "warning UNANSWERED_TEXT", "takes '/hlep'"),
    (["{type: form, form: sginup}", "{type: ask, text: A?, form: signup, chain: any}"], {}, 3,
     "warning UNKNOWN_FORM", "did you mean signup?"),
]  # fmt: skip


@pytest.mark.parametrize(("actions", "files", "line", "code", "words"), NOT_SILENT)
def test_what_would_do_otherwise_than_it_reads_is_found(
    tmp_path: Path, actions: list[str], files: Files, line: int, code: str, words: str
) -> None:
    text = "start:\n  actions:\n" + "".join(f"    - {one}\n" for one in actions)
    (problem,) = problems_of(tmp_path, {**files, FILE: text})
    assert (problem.line, f"{problem.severity} {problem.code}") == (line, code)
    assert problem.file == ("bot.yaml" if "bot.yaml" in files else FILE)
    assert words in problem.message


@pytest.mark.parametrize(
    ("actions", "files"),
    [
        (["{type: send, text: '{{person.lang}}', en: Hi, ru: Привет}"], NUMBER),
        ([ASKS, "{type: ask, text: B?, chain: completed}"], {}),
        (["{type: ask, text: A?, when: {event_text: {rule: empty}}}", ASKS], {}),
        ([HTTP, SENT.replace("}", ", chain: completed}"), SENT.replace("}", ", chain: [failed, drop]}")], {}),
        ([SENT, HTTP.replace("}", ", chain: completed}"), SENT.replace("}", ", chain: failed}")], {}),
        (["{type: send, text: x, to: 'sms:+79990000000'}", "{type: send, text: x, to: ['7=vk:1', 'group:A']}"], {}),
        (["{type: send, text: x, to: {people: true, when: {person.n: {rule: empty}}}, channels: first}"], NUMBER),
        (["{type: send, text: x, to: person, channels: [all, sms, email]}"], {}),
        (["{type: send, text: x, delay: 1d, tag: '{user_id}'}", "{type: cancel, tag: other}"], {}),
        (["{type: send, text: '{due} {event_text|fallback:x}'}"], SCHEDULED),
        (["{type: validator, rules: {event_text: [{rule: regex, value: '^\\{\\w{2}$'}]}}"], {}),
        (["{type: send, text: x, deliver_at: '{person.lang}'}"], NUMBER),
        (["{type: send, text: x, when: {person.c: {rule: in_list, value: [a, '{user_id}', '']}}}"], CHOICE),
        (["{type: send, text: x, when: {person.c: {rule: contains, value: z}}}"], CHOICE),
        (["{type: ask, text: A?, row: x}"], {"settings.yaml": "ask: {form: f}\n"}),
        ([HTTP, ELSE_IF % "code: {rule: in_list, value: [NO_RESPONSE, BLOCKED, QUOTA_EXCEEDED, '{user_id}']}"], {}),
        (["{type: scenario, value: other, with: {code: x}}", ELSE_IF % "code: {rule: equals, value: x}"], OTHER),
        (["{type: for_each, items: a, as: who, scenario: other, collect: [who, number]}"], OTHER),
        (["{type: ask, text: A?, dates: {from: 2026-12-10, to: 14d}}"], {}),
        (["{type: ask, text: A?, dates: {to: 2020-01-01}}"], {}),
        (["{type: ask, text: A?, times: {from: 8:00, to: 20:00, day: '{person.lang}'}}"], NUMBER),
        (["{type: ask, text: A?, rules: [{rule: between, value: '1,5'}, {rule: at_least, value: '{user_id}'}]}"], {}),
        (["{type: order, text: x, answer: confirm, deliver_at: 25.11 9:00, until: never}"], {}),
        (["{type: ask, text: A?, inline: [['1', '2'], [{Stop: start}]], reply: [[Any]]}"], {}),
        (["{type: ask, text: A?, options: [a, b], inline: [[b], [a]]}"], {}),
        (["{type: send, text: x, inline: [[Other]], reply: [[status, /help]]}"], PRESSES),
        (["{type: send, text: '{event_text|fallback:}', reply: [[Any]]}"], {}),
        (["{type: send, text: x, reply: [[Any]]}", ASKS], {}),
    ],
)
def test_what_does_as_it_reads_is_no_finding(tmp_path: Path, actions: list[str], files: Files) -> None:
    text = "start:\n  actions:\n" + "".join(f"    - {one}\n" for one in actions)
    assert [str(one) for one in problems_of(tmp_path, {**files, FILE: text})] == []
