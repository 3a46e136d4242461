"""Each action that fails says why: by a `code` that a chain can use, and by an `error` in the language of people."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import NotFound
from scenarios.bot import Action, Place, Scenario
from scenarios.engine import begin, end, refused
from scenarios.loader import load
from scenarios.testing.bot_tests import run_tests
from tests.scenarios.bot_folder import BotFolder
from tests.support.paths import ROOT

FAILURES = {
    "reserve, kind: seats, place: taken, most: 2": "PLACE_TAKEN",
    "reserve, kind: seats, place: other": "PLACES_FULL",
    "reserve, kind: seats, place: none, release: true": "PLACE_NOT_HELD",
    "reserve, kind: seats": "FIELD_INVALID",
    "set, variables: {bot.seats: {append: taken, times: 1}}": "VARIABLE_TAKEN",
    'set, variables: {run.number: "{event_text}"}': "VALUE_INVALID",
    'user, user_state: ok, expire: "{event_text}"': "FIELD_INVALID",
    'check_promo, promo_code: "{event_text}"': "PROMO_NOT_FOUND",
    "check_promo, promo_code: OVER": "PROMO_EXPIRED",
    "check_promo, promo_code: LATER": "PROMO_NOT_YET_VALID",
    "check_promo, promo_code: OTHER": "PROMO_OF_OTHER_PERSON",
    "check_promo, promo_code: LATER, promo_name: b": "PROMO_OF_OTHER_NAME",
    "create_promo, promo_name: a, promo_code: OTHER": "PROMO_TAKEN",
    "modify_promo, promo_id: 99": "PROMO_NOT_FOUND",
    "promo_management, operation: details, promo_code: NONE": "PROMO_NOT_FOUND",
    "request_management, operation: details, event_text: 99": "REQUEST_NOT_FOUND",
    "form, form: wash, row: none, delete: true": "NO_ROW",
    'for_each, items: "1, 2", limit: 1, scenario: prepare': "TOO_MANY_ITEMS",
    'for_each, items: "1, 2", at_once: 0, scenario: prepare': "FIELD_INVALID",
    'scenario, value: "{event_text}"': "SCENARIO_UNKNOWN",
    'branch, cases: [], otherwise: "{event_text}"': "SCENARIO_UNKNOWN",
    "validator, rules: {event_text: {rule: empty}}": "NOT_VALID",
    'send, text: "{answer|fallback:}"': "NOTHING_TO_SEND",
    'send, text: x, inline: [[{A: "prepare?{event_text} is longer than all the data of a button may be in Telegram"}]]':
        "BUTTON_TOO_LONG",
    'send, text: x, delay: "{event_text}"': "DELAY_MALFORMED",
    'ask, text: "{answer|fallback:}"': "NOTHING_TO_SEND",
    "ask, text: x, dates: {to: 2020-01-01}": "FIELD_INVALID",
    "job, operation: status, kind: none": "JOB_NOT_FOUND",
    "job, operation: list": "ADMIN_NEEDED",
    'http_request, url: "https://example.org"': "STATUS_REFUSED",
    'cancel, tag: x, required_role: admin': "NOT_ALLOWED",
}  # fmt: skip
"""An action → the code of its failure."""

BEFORE = """
prepare:
  actions:
    - {type: reserve, kind: seats, place: taken}
    - {type: create_promo, promo_name: a, promo_code: OTHER, user_id: 8, chain: completed}
    - {type: create_promo, promo_name: a, promo_code: OVER, user_id: any, started_at: 2026-01-01,
       expired_at: 2026-11-30, chain: completed}
    - {type: create_promo, promo_name: a, promo_code: LATER, user_id: any, started_at: 2099-01-01, chain: completed}
mine: {actions: [{type: reserve, kind: seats, place: mine}]}
"""


@pytest.fixture
def bot(tmp_path: Path) -> BotFolder:
    scenarios = [BEFORE]
    for number, written in enumerate(FAILURES, 1):
        tell = 'on_failure: [{type: send, text: "{code}: {error}"}]'
        scenarios.append(f"failure{number}: {{actions: [{{type: {written}, {tell}}}]}}")
    names = ", ".join(f"/failure{number}: s.failure{number}" for number in range(1, len(FAILURES) + 1))
    folder = BotFolder(tmp_path).write("scenarios/s.yaml", "\n".join(scenarios))
    folder.write("triggers.yaml", f"text: {{exact: {{/prepare: s.prepare, /mine: s.mine, {names}}}}}")
    folder.write("bot.yaml", "roles: {admin: {users: [1]}}")
    return folder.write("variables.yaml", "{bot: {seats: list}, person: {seats: list}, run: {number: number}}")


@pytest.mark.parametrize(("language", "letters"), [("ru", r".*[а-яё]{2}"), ("en", r"[^а-яё]+$")])
async def test_each_failure_has_a_code_and_words_in_the_language_of_the_person(
    bot: BotFolder, language: str, letters: str
) -> None:
    tests = []
    for number, code in enumerate(FAILURES.values(), 1):
        user = f"{{event_text: /failure{number}, language_code: {language}}}"
        steps = f"{{user: /prepare, as: 8}}, {{user: /mine}}, {{user: {user}, bot: {{matches: '{code}: {letters}'}}}}"
        returns = "{http_request: {response: {status: 500}}}"
        tests.append(f"t{number}: {{at: 2026-12-01 09:00, returns: {returns}, steps: [{steps}]}}")
    bot.write("tests/t.yaml", "\n".join(tests))
    verdicts, problems = await run_tests(bot.folder, load(bot.folder).bot)
    found = [one.problem for one in verdicts if one.problem]
    assert "\n".join(found) == ""
    assert problems == []


@pytest.mark.parametrize(
    ("language", "said"), [("ru", "7: Такого человека нет"), ("en", "There is no person '7'."), ("", "There is no")]
)
def test_what_core_refuses_is_said_in_the_language_of_the_person(language: str, said: str) -> None:
    scenario = Scenario("s", "s", (Action("send", {}, Place("s.yaml")),), Place("s.yaml"))
    run, _ = begin([scenario], language=language)
    run, _ = end(run, (0, 0), refused(NotFound("USER_NOT_FOUND", "There is no person '7'.", about="7")))
    results = run.steps[(0, 0)].passed_on.results
    assert results["code"] == "USER_NOT_FOUND"
    assert str(results["error"]).startswith(said)


@pytest.mark.parametrize(
    ("files", "account", "language"),
    [
        ({}, "", "ru"),
        ({"bot.yaml": "language: en"}, "", "en"),
        ({"bot.yaml": "language: en"}, "de", "en"),
        ({"bot.yaml": "language: en"}, "ru", "ru"),
        ({"bot.yaml": "language: ru"}, "en-GB", "en"),
        ({"texts/en.yaml": "hello: Hello"}, "", "en"),
        ({"texts/en.yaml": "hello: Hello", "texts/ru.yaml": "hello: Привет"}, "", "ru"),
        ({"texts/en.yaml": "hello: Hello", "texts/ru.yaml": "hello: Привет", "bot.yaml": "language: en"}, "", "en"),
    ],
)
async def test_people_of_whom_no_language_is_known_are_spoken_to_in_that_of_the_bot(
    tmp_path: Path, files: dict[str, str], account: str, language: str
) -> None:
    said = {"en": "there is no scenario 'gone'", "ru": "нет сценария 'gone'"}[language]
    tell = '[{type: send, text: "{language}: {error}"}]'
    folder = BotFolder(tmp_path).write(
        "scenarios/s.yaml", f'begin: {{actions: [{{type: scenario, value: "{{event_text}}", on_failure: {tell}}}]}}'
    )
    folder.write("triggers.yaml", "text: {exact: {gone: begin}}")
    for file, content in files.items():
        folder.write(file, content)
    user = f"{{event_text: gone, language_code: '{account}'}}"
    folder.write("tests/t.yaml", f't: {{steps: [{{user: {user}, bot: "{language}: {said}"}}]}}')
    verdicts, problems = await run_tests(folder.folder, load(folder.folder).bot)
    assert ([one.problem for one in verdicts if one.problem], problems) == ([], [])


def endings_of(path: Path) -> Iterator[tuple[str, int]]:
    """The endings of a source that fail without a code."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Ending"):
            continue
        states = [ast.unparse(one) for one in node.args[:1]]
        if states[0] in ("State.FAILED", "State.UNKNOWN") and not {one.arg for one in node.keywords} & {"code"}:
            yield path.name, node.lineno


def test_no_source_makes_a_failure_without_a_code() -> None:
    assert [one for path in (ROOT / "scenarios").rglob("*.py") for one in endings_of(path)] == []
