"""The command scenarios: check, new and schema, without a server and without settings."""

import json
from pathlib import Path

import pytest

from cli.commands.start.installation import Installation
from cli.commands.start.up import summary
from cli.main import main
from cli.processes.supervisor import Supervisor

BAD = "start:\n  actions:\n    - {type: sned, text: x}\n    - {type: send, text: x, attachment: logo.png}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bot" / "scenarios").mkdir(parents=True)
    (tmp_path / "bot" / "scenarios" / "menu.yaml").write_text(BAD)
    (tmp_path / "bot" / "triggers.yaml").write_text('text: {"*": start}')
    return tmp_path / "bot"


def test_check_prints_a_row_per_problem_and_fails_if_one_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scenarios", "check", str(folder), "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == {
        "file": "scenarios/menu.yaml",
        "line": 3,
        "column": 14,
        "severity": "error",
        "code": "UNKNOWN_ACTION",
        "message": "there is no action 'sned'; did you mean send?",
        "parameters": {"name": "sned", "meant": "send"},
        "translations": {"ru": {"message": "нет действия 'sned'; возможно, send?"}},
    }
    assert [(row["line"], row["severity"]) for row in rows] == [(3, "error"), (4, "warning")]


def test_check_without_json_prints_places_that_an_editor_opens(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scenarios", "check", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{folder}/scenarios/menu.yaml:3:14: error UNKNOWN_ACTION: ")
    assert lines[-2] == "1 scenario with 2 actions: 1 error, 1 warning"


def test_check_speaks_russian_if_it_is_asked_to(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios", "check", str(folder), "--lang", "ru"]) == 1
    lines = capsys.readouterr().out.splitlines()
    place = f"{folder}/scenarios/menu.yaml"
    assert lines[:-1] == [
        f"{place}:3:14: ошибка UNKNOWN_ACTION: нет действия 'sned'; возможно, send?",
        f"{place}:4:41: предупреждение ATTACHMENT_MISSING: в папке бота нет файла 'logo.png'",
        "сценариев: 1, действий: 2; ошибок: 1, предупреждений: 1",
    ]


def test_check_succeeds_if_there_are_only_warnings(folder: Path) -> None:
    (folder / "scenarios" / "menu.yaml").write_text(BAD.replace("sned", "send"))
    assert main(["scenarios", "check", str(folder)]) == 0


def test_check_of_a_folder_that_does_not_exist_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scenarios", "check", str(tmp_path / "none")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_new_writes_a_bot_that_passes_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios", "new", str(tmp_path / "bot"), "--json"]) == 0
    assert "triggers.yaml" in json.loads(capsys.readouterr().out)["files"]
    assert main(["scenarios", "check", str(tmp_path / "bot"), "--json"]) == 0
    assert capsys.readouterr().out == ""


def test_new_writes_nothing_into_a_folder_with_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios", "new", str(folder)]) == 1
    assert "is not empty" in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} == {"scenarios", "triggers.yaml"}


def test_schema_prints_a_json_schema_with_every_action(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scenarios", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert "request_management" in schema["$defs"]["action"]["properties"]["type"]["enum"]


def test_new_check_and_up_say_which_bot_answers_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = "this bot; the dialog of teachers answers /link, /help, /unlink, /settings, /select, /cancel, /console;"
    assert main(["scenarios", "new", str(tmp_path / "bot")]) == 0
    assert f"people are answered by {wanted} the bot itself answers /start" in capsys.readouterr().out
    assert main(["scenarios", "check", str(tmp_path / "bot")]) == 0
    assert f"people are answered by {wanted} the bot itself answers /start" in capsys.readouterr().out
    installation = Installation("redis://", "key", tmp_path, Supervisor(print), scenarios=tmp_path / "bot")
    assert (summary(installation, {})["answers"] or "").startswith(wanted)
    alone = Installation("redis://", "key", tmp_path, Supervisor(print), bots=["telegram"])
    assert (summary(alone, {})["answers"] or "").startswith("the dialog of teachers: /start, ")
    (tmp_path / "bot" / "settings.yaml").write_text("teacher: {enabled: false}\n")
    assert main(["scenarios", "check", str(tmp_path / "bot")]) == 0
    assert "people are answered by this bot alone" in capsys.readouterr().out
