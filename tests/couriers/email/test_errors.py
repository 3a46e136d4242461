"""What an answer of the mail server means."""

import pytest

from core.errors import Invalid
from couriers.email.mailer import MailDeferred, MailError, MailRefused, MailUnavailable, MailUnclear, Phase, answered
from couriers.email.message import MailFile


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        *((399, MailUnavailable), (400, MailDeferred), (421, MailUnavailable), (499, MailDeferred)),
        *((500, MailRefused), (599, MailRefused), (600, MailUnavailable)),
    ],
)
def test_the_first_digit_of_an_answer_decides(status: int, meaning: type[MailError]) -> None:
    assert type(answered(Phase.SENDER, status, "text")) is meaning


def test_an_answer_that_is_not_of_smtp_leaves_it_unclear_whether_the_content_arrived() -> None:
    assert type(answered(Phase.CONTENT, 600, "text")) is MailUnclear


@pytest.mark.parametrize(
    ("name", "media_type", "code"),
    [("a\r\nBcc: b", "image/png", "LINE_BREAK"), ("a.png", "png", "MEDIA_TYPE_MALFORMED"), ("a.png", "image/png", "")],
)
def test_a_file_of_a_mail_has_a_name_of_one_line_and_a_media_type(name: str, media_type: str, code: str) -> None:
    try:
        found = (MailFile(name, media_type, b""), "")[1]
    except Invalid as refused:
        found = f"{refused.code} {refused.path}"
    assert found == (f"{code} files" if code else "")
