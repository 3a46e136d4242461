"""What Ada says to people is replaced by the files of ADA_TEXTS (issue 41)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.main import main
from cli.settings.settings import load
from core.errors import SetupError
from core.sentence import LANGUAGES, replace_texts, say, texts_for_people


@pytest.fixture(autouse=True)
def ada_says_its_own_again() -> Iterator[None]:
    yield
    replace_texts({})


def own(folder: Path, **files: str) -> dict[str, str]:
    for language, text in files.items():
        (folder / f"{language}.yaml").write_text(text)
    return {"ADA_TEXTS": str(folder)}


def test_a_text_replaces_the_one_of_its_language_in_the_process_that_reads_it(tmp_path: Path) -> None:
    ada = say("reply_passed", "en", name="Anna")
    load(own(tmp_path, ru='reply_passed: "{name} это прочтёт."\n', en="# all as it was\n"), tmp_path)
    assert [say("reply_passed", one, name="Anna") for one in ("ru", "en")] == ["Anna это прочтёт.", ada]
    load({}, tmp_path)
    assert say("reply_passed", "ru", name="Anna") == "Передано: Anna."


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("reply_pased: x", "Ada has no text 'reply_pased'; did you mean reply_passed?"),
        ("reply_passed: '{nmae} it is'", r"reply_passed has \{nmae\}; it can have \{name\}"),
        ("reply_sent: 'Sent, {name}'", r"reply_sent has \{name\}; it can have no names"),
        ("reply_passed: '{name.__class__}'", "braces hold the name of a value and nothing else"),
        ("reply_passed: '{name'", "reply_passed cannot be used"),
        ("reply_sent: 12", "must be a text of 1 to 1000 characters"),
        ("reply_sent: ' '", "must be a text of 1 to 1000 characters"),
        ("- reply_sent", "must be a mapping of codes to texts"),
        ("reply_sent: 'x", "is not YAML"),
    ],
)
def test_a_text_that_cannot_be_used_is_refused_when_a_process_starts(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(SetupError, match=fault):
        load(own(tmp_path, en=text), tmp_path)


@pytest.mark.parametrize(("name", "fault"), [("no", "which is not a folder"), (".", "has neither en.yaml nor ru.yaml")])
def test_a_folder_without_texts_is_refused(tmp_path: Path, name: str, fault: str) -> None:
    with pytest.raises(SetupError, match=fault):
        load({"ADA_TEXTS": str(tmp_path / name)}, tmp_path)


def test_new_writes_all_texts_as_comments_which_say_the_same_without_their_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["texts", "new", "words"]) == 0
    monkeypatch.setenv("ADA_TEXTS", "words")
    for language in LANGUAGES:
        file = tmp_path / "words" / f"{language}.yaml"
        file.write_text(re.sub(r"^# (?=\w+: \")", "", file.read_text(), flags=re.MULTILINE))
        capsys.readouterr()
        assert main(["texts", "--json", "--lang", language]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said == {code: texts[language] for code, texts in texts_for_people().items()}
    assert main(["texts", "new", "words"]) == 1
    assert "exists already; nothing was written" in capsys.readouterr().err


def test_the_list_marks_the_texts_of_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ADA_TEXTS", own(tmp_path, en="reply_sent: 'Off it goes'")["ADA_TEXTS"])
    assert main(["texts"]) == 0
    assert "reply_sent  (ADA_TEXTS)\n  Off it goes\nreply_small_pictures\n" in capsys.readouterr().out
