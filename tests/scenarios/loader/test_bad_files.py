"""Bad files give problems with file, line and column; everything else of the bot is loaded."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.check import check
from scenarios.loader import composer
from tests.scenarios.loader.folder import found, loaded, write
from tests.support.hypothesis_settings import SETTINGS

GOOD = "start: {actions: [{type: send, text: hello}]}\n"


@pytest.mark.parametrize(
    ("text", "line", "column", "code"),
    [
        ("a: [1\nb: 2\n", 1, 4, "YAML_INVALID"),
        ("a:\n\t- b\n", 2, 1, "YAML_INVALID"),
        ("a: \x00\n", 1, 4, "YAML_INVALID"),
        ("a: {actions: []}\nb: {}\na: {}\n", 3, 1, "DUPLICATE_KEY"),
        ("a: {actions: [{type: send, text: 1, text: 2}]}\n", 1, 37, "DUPLICATE_KEY"),
        ("a: {}\n---\nb: {}\n", 2, 1, "SEVERAL_DOCUMENTS"),
        ("a: *b\n", 1, 4, "UNKNOWN_ANCHOR"),
        ("a: &b {actions: [*b]}\n", 1, 18, "UNKNOWN_ANCHOR"),
        ("a: !!python/object/apply:os.system [ls]\n", 1, 4, "UNKNOWN_TAG"),
        ("a: {actions: [{type: send, text: !!int x}]}\n", 1, 34, "WRONG_TYPE"),
        ("? [a]\n: {}\n", 1, 3, "KEY_NOT_TEXT"),
        ("- a\n", 1, 1, "WRONG_TYPE"),
        ("a: text\n", 1, 4, "WRONG_TYPE"),
        ("a: {actions: {type: send}}\n", 1, 14, "WRONG_TYPE"),
        ("a: {actions: [send]}\n", 1, 15, "WRONG_TYPE"),
        ("a: {actions: [{text: x}]}\n", 1, 15, "MISSING_TYPE"),
        ("a: {actions: [{type: send, text: x, chain: complete}]}\n", 1, 44, "UNKNOWN_OUTCOME"),
        ("a: {actions: [{type: send, text: x, placeholder: 3}]}\n", 1, 50, "WRONG_TYPE"),
        ("a: {action: [x]}\n", 1, 5, "UNKNOWN_FIELD"),
        ("a: " + "[" * 1000, 1, 3 + composer.MAX_DEPTH, "TOO_DEEP"),
    ],
)
def test_a_bad_scenario_file_is_one_problem_with_its_place(
    tmp_path: Path, text: str, line: int, column: int, code: str
) -> None:
    result = loaded(tmp_path, {"scenarios/bad.yaml": text, "scenarios/good.yaml": GOOD})
    assert found(result)[0] == ("scenarios/bad.yaml", line, column, code)
    assert "good.start" in result.bot.scenarios


@pytest.mark.parametrize(
    ("file", "text", "line", "column", "code"),
    [
        ("triggers.yaml", "txt: {exact: {a: start}}\n", 1, 1, "UNKNOWN_SECTION"),
        ("triggers.yaml", "text: {exakt: {a: start}}\n", 1, 8, "UNKNOWN_SECTION"),
        ("triggers.yaml", "text: {exact: [start]}\n", 1, 15, "WRONG_TYPE"),
        ("triggers.yaml", "text: {exact: {a: [[start]]}}\n", 1, 20, "WRONG_TYPE"),
        ("triggers.yaml", "text: {exact: {a: {from_chat: 1}}}\n", 1, 19, "MISSING_FIELD"),
        ("triggers.yaml", "text: {exact: {a: {scenario: start, from_chat: here}}}\n", 1, 48, "WRONG_TYPE"),
        ("triggers.yaml", "text: {exact: {a: {scenario: start, contnue: true}}}\n", 1, 37, "UNKNOWN_FIELD"),
        ("bot.yaml", "commands: [{command: Start!, description: x}]\n", 1, 22, "BAD_COMMAND"),
        ("bot.yaml", "commands: [{command: start}]\n", 1, 12, "MISSING_FIELD"),
        ("bot.yaml", "commands: [{command: a, description: x, scope: all}]\n", 1, 48, "UNKNOWN_SCOPE"),
        ("bot.yaml", "commands: [{command: a, description: x, scope: chat}]\n", 1, 12, "MISSING_FIELD"),
        ("bot.yaml", "roles: {admin: {users: [anna]}}\n", 1, 25, "WRONG_TYPE"),
        ("bot.yaml", "roles: {admin: {permisions: []}}\n", 1, 17, "UNKNOWN_FIELD"),
        ("settings.yaml", "just a text\n", 1, 1, "WRONG_TYPE"),
    ],
)
def test_a_mistake_in_another_file_has_its_place_too(
    tmp_path: Path, file: str, text: str, line: int, column: int, code: str
) -> None:
    result = loaded(tmp_path, {"scenarios/good.yaml": GOOD, file: text})
    assert found(result)[0] == (file, line, column, code)


def test_a_name_that_resembles_no_known_one_is_only_a_warning(tmp_path: Path) -> None:
    files = {"scenarios/good.yaml": GOOD, "triggers.yaml": "polls: {a: start}\ntxt: {a: start}\n"}
    severities = [problem.severity for problem in loaded(tmp_path, files).problems]
    assert severities == ["warning", "error"]


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 20)]
    result = loaded(tmp_path, {"scenarios/bomb.yaml": "\n".join(lines)})
    assert ("scenarios/bomb.yaml", 6, 5, "TOO_LARGE") in found(result)


def test_a_file_in_another_encoding_is_reported_where_it_begins(tmp_path: Path) -> None:
    write(tmp_path, {"scenarios/good.yaml": GOOD})
    (tmp_path / "scenarios" / "old.yaml").write_bytes(b"start: {}\n# " + "Привет".encode("cp1251"))
    assert found(loaded(tmp_path, {})) == [("scenarios/old.yaml", 2, 3, "NOT_UTF8")]


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path, {"scenarios/good.yaml": GOOD})
    (tmp_path / "bot.yaml").mkdir()
    (tmp_path / "scenarios" / "gone.yaml").symlink_to(tmp_path / "none")
    assert found(loaded(tmp_path, {})) == [
        ("bot.yaml", 1, 1, "UNREADABLE"),
        ("scenarios/gone.yaml", 1, 1, "UNREADABLE"),
    ]


@pytest.mark.parametrize("file", ["scenarios/stolen.yaml", "triggers.yaml", "bot.yaml", "settings.yaml"])
def test_a_link_out_of_the_folder_is_not_followed_and_nothing_of_its_file_is_shown(tmp_path: Path, file: str) -> None:
    (tmp_path / "secrets").write_text("password: [hunter2\n")
    folder = write(tmp_path / "bot", {"scenarios/good.yaml": GOOD})
    (folder / file).symlink_to("../" * file.count("/") + "../secrets")
    result = loaded(folder, {})
    assert found(result) == [(file, 1, 1, "LEADS_OUT")]
    assert "hunter2" not in str(result.problems)


def test_a_folder_that_is_a_link_out_of_the_bots_folder_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", {"stolen.yaml": "password: [hunter2\n"})
    folder = tmp_path / "bot"
    folder.mkdir()
    (folder / "scenarios").symlink_to(tmp_path / "elsewhere")
    assert ("scenarios", 1, 1, "LEADS_OUT") in found(loaded(folder, {}))
    assert "stolen" not in str(loaded(folder, {}).problems)


def test_links_within_the_folder_and_to_the_folder_are_followed(tmp_path: Path) -> None:
    folder = write(tmp_path / "versions" / "2", {"scenarios/good.yaml": GOOD})
    (folder / "scenarios" / "same.yaml").symlink_to("good.yaml")
    (tmp_path / "bot").symlink_to(folder)
    assert {"good.start", "same.start"} <= set(loaded(tmp_path / "bot", {}).bot.scenarios)


def test_links_in_a_circle_are_a_problem(tmp_path: Path) -> None:
    write(tmp_path, {"scenarios/good.yaml": GOOD})
    (tmp_path / "bot.yaml").symlink_to("bot.yaml")
    assert found(loaded(tmp_path, {})) == [("bot.yaml", 1, 1, "UNREADABLE")]


def test_a_name_that_cannot_be_printed_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, {"scenarios/good.yaml": GOOD})
    Path(os.fsdecode(bytes(tmp_path / "scenarios") + b"/\xff.yaml")).write_text(GOOD)
    (problem,) = loaded(tmp_path, {}).problems
    assert (problem.code, problem.file) == ("UNKNOWN_FILE", "'scenarios/\\udcff.yaml'")


def test_files_that_are_not_read_are_warnings(tmp_path: Path) -> None:
    files = {"scenarios/good.yaml": GOOD, "scenarios/other.yml": GOOD, "trigger.yaml": "text: {}\n"}
    result = loaded(tmp_path, files)
    assert [(problem.file, problem.severity) for problem in result.problems] == [
        ("scenarios/other.yml", "warning"),
        ("trigger.yaml", "warning"),
    ]
    assert "did you mean triggers.yaml?" in result.problems[1].message


YAML_PIECES = st.sampled_from(
    [
        "start",
        "actions",
        "type",
        "send",
        "text",
        "exact",
        "chain",
        "scenario",
        "inline",
        "rules",
        "value",
        "true",
        "0x",
        "1:2",
        "${A}",
        "{b|c}",
        "a",
        ":",
        "[",
        "]",
        "{",
        "}",
        ",",
        "#",
        "%",
        "~",
        "'",
        '"',
        "é",
        "\ufeff",
        "\x85",
        "<<",
    ]
) | st.sampled_from(
    (": ", "\n", "\n  ", "\n    ", "- ", "&x ", "*x", "!!int ", "!!set ", "|\n", "---\n", "...\n", "? ", "\t")
)
FILES = ("triggers.yaml", "group_triggers.yaml", "bot.yaml", "settings.yaml", "scenarios/menu.yaml")


@SETTINGS
@given(text=st.lists(YAML_PIECES, max_size=40).map("".join) | st.text(max_size=40), file=st.sampled_from(FILES))
def test_any_text_gives_problems_and_never_an_exception(
    tmp_path_factory: pytest.TempPathFactory, text: str, file: str
) -> None:
    folder = tmp_path_factory.mktemp("bot")
    write(folder, {"scenarios/good.yaml": GOOD})
    (folder / file).write_bytes(text.encode("utf-8", "surrogatepass"))
    for problem in check(folder, {}).problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.message


YAML_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["send", "start", "{a}", "", "^("]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "actions",
                    "type",
                    "text",
                    "inline",
                    "chain",
                    "rules",
                    "value",
                    "name",
                    "scenario",
                    "attachment",
                    "exact",
                    "regex",
                    "*",
                    "new_member",
                    "default",
                    "commands",
                    "roles",
                    "users",
                    "send",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@SETTINGS
@given(value=YAML_VALUES, file=st.sampled_from(FILES))
def test_any_values_in_any_place_give_problems_and_never_an_exception(
    tmp_path_factory: pytest.TempPathFactory, value: object, file: str
) -> None:
    import yaml

    folder = tmp_path_factory.mktemp("bot")
    write(folder, {"scenarios/good.yaml": GOOD, file: yaml.safe_dump(value, allow_unicode=True)})
    for problem in check(folder, {}).problems:
        assert problem.file
        assert problem.code.isupper()
