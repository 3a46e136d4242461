"""EmailTemplates of mails: the built-in ones, and an operator's own."""

from pathlib import Path

import pytest

from core.errors import SetupError
from core.model.text.text_parts import beginning_of
from couriers.email import EmailTemplates, Invalid
from couriers.email.template import LOCALES, PLACEHOLDERS
from tests.support.paths import ROOT

VALUES = {"code": "K7Q2XM", "minutes": "24", "channel": "Telegram"}


def own(folder: Path, content: str, name: str = "link-code.ru.txt") -> EmailTemplates:
    (folder / name).write_text(content, encoding="utf-8")
    return EmailTemplates(folder)


@pytest.mark.parametrize("locale", LOCALES)
def test_the_mail_with_a_code_names_it_in_the_readers_language(locale: str) -> None:
    mail = EmailTemplates().message("link-code", locale, "anna@example.org", **VALUES)
    assert (mail.to, mail.sender) == ("anna@example.org", "")
    assert all(value in mail.text for value in VALUES.values())
    assert "K7Q2XM" in mail.subject
    assert ("Ваш код" in mail.text) == (locale == "ru")


@pytest.mark.parametrize("locale", [None, "fr"])
def test_who_has_no_language_that_ada_speaks_gets_that_of_the_installation(locale: str | None) -> None:
    assert "Ваш код" in EmailTemplates().message("link-code", locale, "anna@example.org", **VALUES).text


def test_the_text_of_a_message_is_unchanged_and_its_beginning_is_the_subject() -> None:
    text = "Моей пары сегодня не будет {text} {code}\n\n  Замена: «Сети».\n"
    values = {"text": text, "beginning": beginning_of(text), "settings": ""}
    mail = EmailTemplates().message("message", "ru", "anna@example.org", **values)
    assert (mail.subject, mail.text) == ("Моей пары сегодня не будет {text} {code}", text)


def test_an_operators_template_replaces_subject_sender_and_text(tmp_path: Path) -> None:
    templates = own(tmp_path, "Subject: Код {code}\nFrom: Деканат <dean@example.org>\n\n{code} {minutes} {braces\n")
    mail = templates.message("link-code", "ru", "anna@example.org", **VALUES)
    assert (mail.subject, mail.sender, mail.text) == ("Код K7Q2XM", "Деканат <dean@example.org>", "K7Q2XM 24 {braces")
    assert "your code is" in templates.message("link-code", "en", "anna@example.org", **VALUES).text


def test_a_template_may_be_written_on_windows(tmp_path: Path) -> None:
    (tmp_path / "link-code.ru.txt").write_bytes("\ufeffSubject: Код\r\n\r\n{code}\r\nконец\r\n".encode())
    mail = EmailTemplates(tmp_path).message("link-code", "ru", "anna@example.org", **VALUES)
    assert (mail.subject, mail.text) == ("Код", "K7Q2XM\nконец")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{code}", "neither `Subject"),
        ("", "its first line must be"),
        ("From: ada@example.org\n\nx", "its first line must be"),
        ("Subject: x\nTo: eve@example.org\n\nx", "neither `Subject"),
        ("Subject: x\nFrom: nobody\n\nx", "not an e-mail address"),
        ("Subject: x\n\n{kode}", r"has \{kode\}; it can have channel, code, minutes"),
        ("Subject: {text}\n\nx", r"has \{text\}"),
    ],
)
def test_a_wrong_template_is_a_setup_error_that_names_the_file(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(SetupError, match=message) as error:
        own(tmp_path, content)
    assert "link-code.ru.txt" in str(error.value)


def test_a_template_that_is_not_utf8_is_a_setup_error(tmp_path: Path) -> None:
    (tmp_path / "message.ru.txt").write_bytes("Subject: Код\n\n{text}".encode("cp1251"))
    with pytest.raises(SetupError, match=r"message\.ru\.txt cannot be used"):
        EmailTemplates(tmp_path)


def test_a_missing_folder_is_a_setup_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="ADA_MAIL_TEMPLATES"):
        EmailTemplates(tmp_path / "missing")


def test_a_link_out_of_the_folder_is_not_followed_and_nothing_of_its_file_is_shown(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("hunter2")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "message.en.txt").symlink_to("../secrets")
    with pytest.raises(SetupError, match="is not followed") as refused:
        EmailTemplates(tmp_path / "own")
    assert "hunter2" not in str(refused.value)


def test_a_value_cannot_add_a_header_through_the_subject() -> None:
    with pytest.raises(Invalid, match="line breaks"):
        EmailTemplates().message("link-code", "ru", "anna@example.org", **{**VALUES, "channel": "x\r\nBcc: eve@x.org"})


def test_every_template_exists_in_every_language() -> None:
    folder = ROOT / "couriers" / "email" / "templates"
    assert {file.name for file in folder.iterdir()} == {f"{n}.{locale}.txt" for n in PLACEHOLDERS for locale in LOCALES}


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("Пары не будет", "Пары не будет"),
        ("\n \n  Пары\tне  будет \u2028вторая", "Пары не будет"),
        ("x" * 70, "x" * 70),
        ("x" * 71, "x" * 69 + "…"),
        ("слово " * 20, "слово " * 10 + "слово…"),
        ("a\x00b\x07", "ab"),
        (" \n", ""),
    ],
)
def test_the_beginning_of_a_text_is_one_short_line(text: str, beginning: str) -> None:
    assert beginning_of(text) == beginning
