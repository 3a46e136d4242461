"""The check of a bot before it runs: every complaint has file, line and column."""

from pathlib import Path
from typing import Annotated

import pytest

from scenarios.actions import Actions, own_actions
from scenarios.check import Checked, check
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Whole
from tests.scenarios.bot_folder import BotFolder
from tests.scenarios.loader.folder import Files, with_russian, write

FILE = "scenarios/menu.yaml"


def checked(folder: Path, files: Files) -> Checked:
    return check(write(folder, files), {}, Actions(own_actions()))


def found(result: Checked) -> list[tuple[str, int, int, str]]:
    """The problems; but these bots have no triggers."""
    problems = [problem for problem in with_russian(result.problems) if problem.code != "NEVER_STARTED"]
    return [(problem.severity, problem.line, problem.column, problem.code) for problem in problems]


def of_action(folder: Path, action: str) -> Checked:
    """The check of a bot whose only action is this one, written in line 3 from column 7 on."""
    return checked(folder, {FILE: f"start:\n  actions:\n    - {action}\n"})


@pytest.mark.parametrize(
    ("action", "column", "code", "words"),
    [
        ("{type: sned, text: x}", 14, "UNKNOWN_ACTION", "did you mean send?"),
        ("{type: send, text: x, txet: x}", 29, "UNKNOWN_FIELD", "did you mean text?"),
        ("{type: send, text: [x]}", 26, "WRONG_TYPE", "must be a text, but is a list"),
        ("{type: send, text: true}", 26, "WRONG_TYPE", "put it in quotes: 'true'"),
        ("{type: send, text: x, callback_edit: never}", 44, "WRONG_TYPE", "true or false"),
        ("{type: send, text: x, parse_mode: Markdown}", 41, "WRONG_TYPE", "HTML, MarkdownV2"),
        ("{type: send, text: x, inline: [Yes]}", 38, "WRONG_TYPE", "a row is a list of buttons"),
        ("{type: send, text: x, inline: [[{Next: strat}]]}", 46, "UNKNOWN_SCENARIO", "did you mean start?"),
        ("{type: send, text: x, inline: [[[x]]]}", 39, "WRONG_TYPE", "must be a text"),
        ("{type: send, attachment: {type: photo}}", 32, "WRONG_TYPE", "names a file"),
        ("{type: send, attachment: ../secret.txt}", 32, "ATTACHMENT_OUTSIDE", "outside the bot's folder"),
        ("{type: send, attachment: /etc/passwd}", 32, "ATTACHMENT_OUTSIDE", "outside the bot's folder"),
        ("{type: user, user_state: '', expire: soon}", 44, "WRONG_TYPE", "a duration"),
        ("{type: request_management, limit: many}", 41, "WRONG_TYPE", "a whole number"),
        ("{type: request_management, from_date: 1.2.26}", 45, "WRONG_TYPE", "a date"),
        ("{type: send, text: x, answer: maybe}", 37, "WRONG_TYPE", "A question is one of confirm"),
        (f"{{type: send, text: x, answer: [{'x, ' * 50}y]}}", 37, "WRONG_TYPE", "At most 50"),
        (f"{{type: send, text: x, answer: [x, {'y' * 101}]}}", 37, "WRONG_TYPE", "100 characters"),
        ("{type: send, text: x, answer: [x, x]}", 37, "WRONG_TYPE", "the same text"),
        ("{type: scenario, value: [strat]}", 32, "UNKNOWN_SCENARIO", "did you mean start?"),
        ("{type: scenario}", 7, "MISSING_FIELD", "name or value"),
        ("{type: validator, rules: [not_empty]}", 32, "WRONG_TYPE", "a mapping from fields"),
        ("{type: validator, rules: {event_text: not_empty}}", 45, "WRONG_TYPE", "a list of rules"),
        ("{type: validator, rules: {event_text: [{rule: notempty}]}}", 53, "WRONG_TYPE", "one of not_empty"),
        ("{type: validator, rules: {event_text: [{rule: regex, value: '^(a'}]}}", 67, "BAD_PATTERN", "cannot be used"),
        ("{type: validator, rules: {event_text: [{rule: length_min, value: x}]}}", 72, "WRONG_TYPE", "a whole number"),
        ("{type: validator, rules: {event_text: [{rule: contains}]}}", 53, "WRONG_TYPE", "needs a value"),
        (
            "{type: validator, rules: {event_text: [{rule: empty, on_error: stop}]}}",
            70,
            "WRONG_TYPE",
            "fail, pass, skip",
        ),
    ],
)
def test_a_mistake_in_an_action_is_an_error_at_its_place(
    tmp_path: Path, action: str, column: int, code: str, words: str
) -> None:
    result = of_action(tmp_path, action)
    assert found(result) == [("error", 3, column, code)]
    assert words in result.problems[0].message
    assert result.problems[0].file == FILE


@pytest.mark.parametrize(
    ("action", "column", "code"),
    [
        ("{type: send, text: x, colour: red}", 29, "UNKNOWN_FIELD"),
        ("{type: send, text: x, attachment: logo.png}", 41, "ATTACHMENT_MISSING"),
        ("{type: from_speech, audio_file: speech/a.mp3}", 39, "ATTACHMENT_MISSING"),
        ("{type: send, text: x, required_role: [admin]}", 45, "UNKNOWN_ROLE"),
        ("{type: send, text: x, required_permission: edit}", 50, "UNKNOWN_PERMISSION"),
        ("{type: user, user_state: waiting}", 32, "UNKNOWN_STATE"),
        ("{type: send, text: x, inline: [[{Self: start}, Next]]}", 54, "UNANSWERED_BUTTON"),
        ("{type: send, text: '{event_text|uper}'}", 26, "MODIFIER_UNKNOWN"),
        ("{type: user, user_state: '', note: '{chat_id|truncate:x}', placeholder: true}", 42, "MODIFIER_PARAMETER"),
    ],
)
def test_what_may_be_meant_is_a_warning(tmp_path: Path, action: str, column: int, code: str) -> None:
    result = of_action(tmp_path, action)
    assert found(result) == [("warning", 3, column, code)]
    assert not result.has_errors


@pytest.mark.parametrize(
    "action",
    [
        "{type: send, text: '{name}', name: Anna}",
        "{type: send, text: x, text_to_speech: '{event_text}', placeholder: true}",
        "{type: validator, phone: '{event_text}', rules: {phone: [{rule: regex, value: '^\\+7\\d{10}$'}]}}",
        "{type: validator, rules: {event_text: [{rule: regex, value: '{a}('}], username: {rule: empty}, chat_id: []}}",
        "{type: send, text: 42, inline: '{attachments}', callback_edit: '{is_bot}', reply: []}",
        "{type: send, text: x, inline: [[{Site: 'https://example.com'}, {Next: '{first_name}'}], [{Self: start}]]}",
        "{type: send, attachment: [AgACAgIAAxkBAAI, 'https://example.com/a.png', '{event_text}']}",
        "{type: restrict, can_send_messages: false, duration: 1d 2h, group_admin: true}",
        "{type: invite_link, member_limit: 1, expire: 1m 30s}",
        "{type: user, user_state: ''}",
        "{type: send, text: x, answer: [Come, '{event_text}']}",
        "{type: send, text: x, answer: ['{event_text}']}",
        "{type: send, text: x, inline: {}, attachment: [], chain: []}",
    ],
)
def test_what_the_dialect_allows_is_no_problem(tmp_path: Path, action: str) -> None:
    assert found(of_action(tmp_path, action)) == []


def test_a_button_is_answered_by_a_trigger_with_the_same_normalised_text(tmp_path: Path) -> None:
    files = {
        FILE: "start: {actions: [{type: send, text: x, inline: [['🏠 Меню', МЕНЮ, Всё меню, Другое]]}]}\n",
        "triggers.yaml": "callback: {exact: {Меню: start}, contains: {vsyo: start, меню: start}}\n",
    }
    result = checked(tmp_path, files)
    assert [problem.message for problem in result.problems] == ["no trigger of callback answers the button 'Другое'"]


def test_a_bot_that_others_wrote_for_the_dialect_has_no_errors(tmp_path: Path) -> None:
    """The example of the specification, and what bots of other versions have: see the folder's texts."""
    result = checked(tmp_path, FOREIGN)
    assert [problem for problem in result.problems if problem.is_error] == []
    warned = {(problem.file, problem.code) for problem in result.problems}
    assert warned == {
        ("settings.yaml", "UNKNOWN_SETTING"),
        ("scenarios/mute.yaml", "ATTACHMENT_MISSING"),
        ("scenarios/mute.yaml", "UNKNOWN_FIELD"),
        ("scenarios/mute.yaml", "EMPTY_SEND"),
        ("scenarios/mute.yaml", "RESULT_MAY_BE_MISSING"),
        ("scenarios/user.yaml", "UNKNOWN_RULE_FIELD"),
    }


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("user_manager: {state_expire: 60}", []),
        ("tg_event_bot: {max_event_age_seconds: 60}", []),
        ("event_manager: {max_event_age_seconds: 10}", []),
        ("user_manager: {state_expire: soon}", ["WRONG_TYPE"]),
        ("tg_event_bot: {max_retries: 3}", ["UNKNOWN_SETTING"]),
    ],
)
def test_of_the_sections_of_coreness_one_setting_is_used_and_the_others_are_named(
    tmp_path: Path, written: str, found: list[str]
) -> None:
    files = BotFolder(tmp_path).write("scenarios/s.yaml", "a: {actions: [{type: send, text: x}]}")
    files.write("triggers.yaml", "text: {exact: {a: s.a}}").write("settings.yaml", written)
    assert [one.code for one in check(files.folder).problems] == found


FOREIGN = {
    "settings.yaml": "logger: {console_logging_enabled: true}\nevent_manager: {max_event_age_seconds: 10}\n",
    "triggers.yaml": """
text:
  exact: {"/start": "user.user_validate"}
  contains: {"справка": "user_validate"}
  regex: {'^код\\s+(\\d{4})$': "mute.restrict"}
  state: {}
callback: {exact: {}, state: {}, contains: {}}
""",
    "group_triggers.yaml": "text: {starts_with: {/mute: mute.restrict}}\nnew_member: {group: {}, default: {}}\n",
    "scenarios/user.yaml": """
user_validate:
  actions:
    - type: validator
      rules: {username: [{rule: not_empty}], phone: [{rule: regex, value: '^\\+7\\d{10}$'}]}
    - type: send
      text: "Ошибка валидации"
      chain: failed
      chain_drop: completed
    - type: send
      text: "Ок, {username|fallback:Гость}"
      chain: true
""",
    "scenarios/mute.yaml": """
restrict:
  actions:
    - {type: scenario, value: admin}
    - {type: validator, duration: "{event_text|regex:(?:\\\\d+\\\\s*[dhms]\\\\s*)+}", placeholder: true, chain: true}
    - {type: validator, rules: {duration: [{rule: "not_empty"}]}, chain: [completed, "failed"]}
    - {type: "send", text: "❌", callback_edit: false, chain: failed, chain_drop: completed}
    - {type: validator, chain: true}
    - {type: restrict, can_send_messages: false, chain: completed}
    - {type: send, text: "🔒 {restrict_username}", reply: [], attachment: "logo.png", chain: any}
    - {type: create_promo, promo_name: a, length: 8, use_digits: true, hash_id: 5, target_user_id: Any}
    - {type: send, text: "", chain: completed}
admin:
  actions:
    - {type: validator, group_admin: true, chain: true, chain_drop: failed}
""",
}


def actions(*steps: str) -> str:
    return "start:\n  actions:\n" + "".join(f"    - {step}\n" for step in steps)


SEND = "type: send, text: x"


@pytest.mark.parametrize(
    ("steps", "lines"),
    [
        ((f"{{{SEND}}}", f"{{{SEND}, chain: drop}}"), [4]),
        ((f"{{{SEND}, chain_drop: completed}}", f"{{{SEND}, chain: completed}}", f"{{{SEND}, chain: true}}"), [4]),
        ((f"{{{SEND}, chain_drop: any}}", f"{{{SEND}, chain: true}}", f"{{{SEND}, chain: drop}}"), [4, 5]),
        ((f"{{{SEND}, chain_drop: any}}", f"{{{SEND}}}", f"{{{SEND}, chain: true}}"), []),
        ((f"{{{SEND}}}", f"{{{SEND}, chain: failed}}", f"{{{SEND}, chain: drop}}"), []),
        ((f"{{{SEND}, chain: drop}}",), []),
        (("{type: validator, rules: {}}", f"{{{SEND}, chain: drop}}"), []),
        (("{type: scenario, value: other}", f"{{{SEND}, chain: drop}}"), []),
        ((f"{{{SEND}}}", f"{{{SEND}, chain: failed, chain_drop: drop}}", f"{{{SEND}, chain: drop}}"), [5]),
    ],
)  # fmt: skip
def test_a_step_that_no_outcome_leads_to_is_an_error(tmp_path: Path, steps: tuple[str, ...], lines: list[int]) -> None:
    result = checked(tmp_path, {FILE: actions(*steps), "scenarios/other.yaml": "other: {}\n"})
    assert found(result) == [("error", line, 7, "UNREACHABLE") for line in lines]


def test_scenarios_that_splice_each_other_are_an_error_that_names_the_loop(tmp_path: Path) -> None:
    files = {
        "scenarios/a.yaml": "one: {actions: [{type: scenario, value: two}]}\nx: {actions: [{type: scenario, name: x}]}",
        "scenarios/b.yaml": "two:\n  actions:\n    - {type: scenario, value: [a.one, three]}\nthree: {}\n",
    }  # fmt: skip
    result = checked(tmp_path, files)
    assert found(result) == [("error", 2, 38, "SCENARIO_LOOP"), ("error", 3, 32, "SCENARIO_LOOP")]
    assert "a.x → a.x" in result.problems[0].message
    assert "a.one → b.two → a.one" in result.problems[1].message


def test_scenarios_that_are_spliced_in_twice_are_no_loop(tmp_path: Path) -> None:
    menu = "a: {actions: [{type: scenario, value: [b, c]}]}\nb: {actions: [{type: scenario, value: c}]}\nc: {}\n"
    assert found(checked(tmp_path, {FILE: menu})) == []


def test_each_scenario_is_walked_once_however_many_ways_lead_to_it(tmp_path: Path) -> None:
    lines = [f"s{n}: {{actions: [{{type: scenario, value: [s{n + 1}, s{n + 1}]}}]}}" for n in range(60)]
    assert found(checked(tmp_path, {FILE: "\n".join([*lines, "s60: {}"])})) == []


def test_a_chain_of_a_thousand_splices_is_walked(tmp_path: Path) -> None:
    lines = [f"s{n}: {{actions: [{{type: scenario, value: s{n + 1}}}]}}" for n in range(2000)]
    result = checked(tmp_path, {FILE: "\n".join([*lines, "s2000: {actions: [{type: scenario, value: s0}]}"])})
    assert [code for _, _, _, code in found(result)] == ["SCENARIO_LOOP"]


def test_settings_name_actions_and_their_fields(tmp_path: Path) -> None:
    settings = "send: {remove: true}\nuser: {expire: soon, expyre: 1d}\nto_speech: {enabled: maybe}\nlogger: {a: 1}\n"
    result = checked(tmp_path, {FILE: "start: {}\n", "settings.yaml": settings})
    assert found(result) == [
        ("error", 2, 16, "WRONG_TYPE"),
        ("error", 2, 22, "UNKNOWN_SETTING"),
        ("error", 3, 22, "WRONG_TYPE"),
        ("warning", 4, 1, "UNKNOWN_SETTING"),
    ]


class DiceAttributes(Attributes, frozen=True):
    sides: Annotated[Whole, Own("How many sides.")] = None


def test_an_action_of_an_installed_package_is_checked_like_ours(tmp_path: Path) -> None:
    dice = ActionType("dice", "Throws dice.", DiceAttributes)
    folder = write(tmp_path, {FILE: actions("{type: dice, sides: 6}", "{type: dice, sides: six}", "{type: card}")})
    installed = Actions({**own_actions(), "dice": dice}, {"card": "cards:ACTION cannot be imported: ImportError: gone"})
    result = check(folder, {}, installed)
    assert found(result) == [("error", 4, 27, "WRONG_TYPE"), ("error", 5, 14, "UNKNOWN_ACTION")]
    assert "cards:ACTION cannot be imported" in result.problems[1].message


def test_ten_thousand_mistakes_are_reported(tmp_path: Path) -> None:
    result = checked(tmp_path, {FILE: actions(*["{type: sned, txet: x, chain: true}"] * 10_000)})
    codes = [problem.code for problem in result.problems]
    assert (codes.count("UNKNOWN_ACTION"), codes.count("TOO_MANY_ACTIONS")) == (10_000, 1)
