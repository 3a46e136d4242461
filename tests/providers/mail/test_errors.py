"""What an answer of the mail server means."""

import pytest

from providers.mail.errors import MailDeferred, MailError, MailRefused, MailUnavailable, MailUnclear, Phase, answered


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
