"""What authors do wrong in YAML: one message each, which says in their words where, what, and what to write instead."""

from pathlib import Path

import pytest

from scenarios.check import check
from tests.scenarios.loader.folder import with_russian, write

SENDS = "start:\n  actions:\n    - type: send\n"
TRIGGERS = """
text:
  exact: {/start: menu.start, /menu: start, /help: other.help}
  state: {asked: menu.start}
callback: {exact: {Ja: menu.start}}
"""
OTHER = """
help:
  actions:
    - {type: send, text: x, inline: [[{Back: menu.start}, {Back: start}]]}
    - {type: scenario, value: menu.begin}
"""
"""Three names in triggers.yaml, and three in another file, are those of the file that cannot be read."""


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        (SENDS + "\t  text: x\n", 4, 1, "a tab indents this line; YAML takes only spaces"),
        ("start:\n\tactions:\n", 2, 1, "write two spaces for each level"),
        ("start:\n  actions:\n    - type:\xa0send\n      text: x\n", 3, 12, "a no-break space (U+00A0)"),
        ("start:\n  actions:\n\xa0\xa0\xa0\xa0- type: send\n      text: x\n", 3, 1, "write an ordinary space"),
        (SENDS + "      text: Hello: friend\n", 4, 18, "a colon with a space behind it; put the whole text in quotes"),
        (SENDS + "      text: @ivan\n", 4, 13, 'a text that begins with @ is written in quotes: "@…"'),
        (SENDS + "      text: *bold* x\n", 4, 13, "begins with * is written in quotes"),
        (SENDS + "      text: {first_name}, hello\n", 4, 13, 'begins with { is written in quotes: "{…"'),
        (SENDS + "      text: {first_name}\n", 4, 13, 'write it in quotes: "{first_name}"'),
        (SENDS + "      text: [Hello] you\n", 4, 13, "begins with [ is written in quotes"),
        (SENDS + "      text: !Hello\n", 4, 13, "a text with ! in front is written in quotes"),
        (SENDS + '      text: "Hello\n    - type: send\n', 4, 13, "the quote that opens here is never closed"),
        (SENDS + '      text: "Hello "friend""\n', 4, 21, 'inside double quotes a quote is written \\"'),
        (SENDS + '      text: "\\d"\n', 4, 14, "a backslash is written twice"),
        (SENDS + "      text: | Hello\n", 4, 15, "behind | and > the text begins in the next line"),
        (SENDS + "      text: |\n    Hello\n", 5, 5, "or this line belongs to the text above and is indented more"),
        (SENDS + "     text: x\n", 4, 6, "this line is indented by 5, as no line above it"),
        (SENDS + "       text: x\n", 4, 8, "this line is indented by 7, as no line above it"),
        (SENDS + "      inline: [[a, b]\n    - type: send\n", 4, 15, "the [ that opens here is not closed; write ]"),
        ("start:\n  actions\n    - type: send\n", 2, 10, "a colon is missing; write actions:"),
        ("start:\n  actions:\n    - type:send\n      text: x\n", 3, 11, "behind the colon of type a space is missing"),
        ("start:\n  actions:\n    -type: send\n     text: x\n", 3, 5, "behind the - a space is missing"),
        ("start:\n  actions:\n    – type: send\n      text: x\n", 3, 5, "an entry of a list begins with -, not with –"),
        (SENDS + "      text: a\x07b\n", 4, 14, "the character U+0007 cannot stand in YAML; remove it"),
    ],
)  # fmt: skip
def test_a_slip_in_yaml_is_one_message_in_the_authors_words(
    tmp_path: Path, text: str, line: int, column: int, words: str
) -> None:
    """What the unreadable file has is not reported as missing by the files that name it."""
    files = {"scenarios/menu.yaml": text, "scenarios/other.yaml": OTHER, "triggers.yaml": TRIGGERS}
    problems = with_russian(check(write(tmp_path, files), {}).problems)
    found = [problem for problem in problems if problem.file != "triggers.yaml"]
    places = [(problem.file, problem.line, problem.column) for problem in found if problem.code != "UNKNOWN_SCENARIO"]
    assert places == [("scenarios/menu.yaml", line, column)]
    assert words in found[0].message


BROKEN = "a: [1\n"


@pytest.mark.parametrize("file", ["triggers.yaml", "group_triggers.yaml", "bot.yaml", "settings.yaml"])
def test_what_an_unreadable_file_has_is_not_missed_elsewhere(tmp_path: Path, file: str) -> None:
    actions = "{type: user, user_state: asked}, {type: send, text: x, inline: [[Ja]], required_role: [admin]}"
    files = {
        "scenarios/menu.yaml": f"start: {{actions: [{actions}]}}\n",
        "triggers.yaml": TRIGGERS.replace(", /help: other.help", ""),
        "bot.yaml": "roles: {admin: {users: [1]}}\n",
    }
    result = check(write(tmp_path, {**files, file: BROKEN}), {})
    assert [(problem.file, problem.code) for problem in result.problems] == [(file, "YAML_INVALID")]


def test_a_name_that_no_unreadable_file_can_have_is_still_reported(tmp_path: Path) -> None:
    files = {"scenarios/menu.yaml": BROKEN, "scenarios/other.yaml": OTHER, "triggers.yaml": TRIGGERS}
    write(tmp_path, {**files, "scenarios/group/more.yaml": "x: {actions: [{type: scenario, value: group.menu.go}]}\n"})
    found = [(problem.file, problem.code) for problem in check(tmp_path, {}).problems]
    assert found == [("scenarios/group/more.yaml", "UNKNOWN_SCENARIO"), ("scenarios/menu.yaml", "YAML_INVALID")]


@pytest.mark.parametrize(
    ("text", "line", "column", "code", "words"),
    [
        (SENDS.replace("send", "sеnd") + "      text: x\n", 3, 13, "UNKNOWN_ACTION", "mean send? Letter 2 is"),
        (SENDS.replace("type", "typе") + "      text: x\n", 3, 7, "MISSING_TYPE", "mean type? Letter 4 is"),
        (SENDS + "      tехt: x\n", 4, 7, "UNKNOWN_FIELD", "mean text? Letter 2 is the Cyrillic е, not the Latin e."),
        ("start:\n  асtions:\n    - {type: send}\n", 2, 3, "UNKNOWN_FIELD", "mean actions? Letter 1 is"),
        (SENDS + "      text: x\n      parse_mode: НTML\n", 5, 19, "WRONG_TYPE", "mean HTML? Letter 1 is"),
        (SENDS + "      text: '{first_name|uрper}'\n", 4, 13, "MODIFIER_UNKNOWN", "mean upper? Letter 2 is"),
        (SENDS + "      text: x\n      inline: [[{Back: stаrt}]]\n", 5, 24, "UNKNOWN_SCENARIO", "start? Letter 3 is"),
    ],
)  # fmt: skip
def test_a_letter_of_another_alphabet_is_named(
    tmp_path: Path, text: str, line: int, column: int, code: str, words: str
) -> None:
    """“Did you mean send?” was said of a name that looks the same."""
    folder = write(tmp_path, {"scenarios/menu.yaml": text, "triggers.yaml": 'text: {"*": menu.start}\n'})
    problems = with_russian(check(folder, {}).problems)
    (problem,) = (one for one in problems if one.code not in ("NO_SCENARIOS", "EMPTY_SEND"))
    assert (problem.line, problem.column, problem.code) == (line, column, code)
    assert words in problem.message
