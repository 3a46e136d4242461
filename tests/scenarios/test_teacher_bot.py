"""The dialog of teachers as a bot: free of mistakes, its own tests pass, it is copied, and speaks both languages."""

from pathlib import Path

import pytest

from cli.main import main
from core.sentence import replace_texts
from scenarios.bot.new_bot import TEACHER
from scenarios.check import check
from scenarios.execution.active_bot import ActiveBot
from scenarios.loader import load
from scenarios.testing.bot_tests import run_tests
from tests.scenarios.bot_folder import BotFolder


async def test_its_own_tests_pass_and_the_check_finds_nothing() -> None:
    checked = check(TEACHER)
    verdicts, problems = await run_tests(TEACHER, checked.bot)
    assert ([one for one in verdicts if one.problem], problems, checked.problems) == ([], [], ())
    assert len(verdicts) == 12


def test_a_school_copies_it_and_changes_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "bot"
    assert main(["scenarios", "new", str(folder), "--teacher"]) == 0
    assert "people are answered by this bot alone" in capsys.readouterr().out
    assert main(["scenarios", "test", str(folder)]) == 0
    assert "12 tests passed" in capsys.readouterr().out
    bot = ActiveBot(folder)
    texts = folder / "texts" / "en.yaml"
    texts.write_text(texts.read_text().replace("Only teachers may write to groups", "Only staff may write"))
    assert bot.has_changed(), "a text is reloaded as a scenario is"
    actions = load(folder).bot.translations["en"]["teacher_order.only_teachers"].actions
    assert str(actions[0].fields["text"]).startswith("Only staff may write.")


@pytest.fixture
def two_languages(tmp_path: Path) -> BotFolder:
    folder = BotFolder(tmp_path).actions('    - {type: send, text: "{text.hello}", inline: [[{"{text.go}": main}]]}')
    folder.write("texts/ru.yaml", "hello: 'Привет, {text.name}!'\ngo: Вперёд\nname: '{first_name}'\n")
    return folder.write("texts/en.yaml", "hello: 'Hello, {first_name}!'\ngo: Go\nname: x\n")


async def test_texts_are_those_of_the_language_of_the_person(two_languages: BotFolder) -> None:
    two_languages.write(
        "tests/t.yaml",
        """
each in its own:
  steps:
    - user: x
    - bot: {text: "Привет, Anna!", buttons: [Вперёд]}
    - user: {event_text: x, language_code: en-GB}
    - bot: {text: "Hello, Anna!", buttons: [Go]}
    - user: {event_text: x, language_code: en, language: ru}
    - bot: {text: "Привет, Anna!", buttons: [Вперёд]}
""",
    )
    checked = check(two_languages.folder)
    verdicts, _ = await run_tests(two_languages.folder, checked.bot)
    assert [one.problem for one in verdicts] == [""]
    assert checked.problems == ()


def test_a_text_that_a_language_lacks_is_a_mistake(two_languages: BotFolder) -> None:
    two_languages.write("texts/en.yaml", "hello: Hello\ngo: Go\n")
    two_languages.actions('    - {type: send, text: "{text.helo}"}')
    found = {(one.file, one.code, one.message) for one in check(two_languages.folder).problems if one.is_error}
    assert found == {
        ("texts/en.yaml", "TEXT_MISSING", "the text 'name' is missing in the language en"),
        ("scenarios/s.yaml", "TEXT_MISSING", "there is no text 'helo' in texts/; did you mean hello?"),
    }


def test_the_word_for_the_organisation_is_a_text_of_the_installation() -> None:
    def said(language: str) -> str:
        return str(load(TEACHER).bot.translations[language])

    assert "сообщения вашего университета" in said("ru")
    try:
        replace_texts({"organisation_of": {"ru": "вашей школы"}, "organisation_at": {"en": "at the school"}})
        assert "сообщения вашей школы" in said("ru")
        assert "Nobody at the school has this e-mail address" in said("en")
        assert "университета" not in said("ru")
    finally:
        replace_texts({})
