"""Cron expressions on the wall clock of a zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from core.errors import Invalid
from core.model.cron import CronExpression

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "after", "following"),
    [
        ("0 9 * * mon-fri", "2026-11-20T09:00Z", "2026-11-23T09:00Z"),  # a Friday
        ("*/15 8-18 * * *", "2026-11-20T18:45Z", "2026-11-21T08:00Z"),
        ("0 0 1,15 * *", "2026-11-01T00:00Z", "2026-11-15T00:00Z"),
        ("0 0 13 * fri", "2026-11-01T00:00Z", "2026-11-06T00:00Z"),  # the 13th or a Friday
        ("0 0 * jan sun", "2026-11-01T00:00Z", "2027-01-03T00:00Z"),
        ("30 4 * * 7", "2026-11-20T00:00Z", "2026-11-22T04:30Z"),  # 7 is Sunday, too
        ("5/20 * * * *", "2026-11-20T00:26Z", "2026-11-20T00:45Z"),
        ("0 0 29 feb *", "2026-11-20T00:00Z", "2028-02-29T00:00Z"),
    ],
)
def test_the_next_moment_of_an_expression(text: str, after: str, following: str) -> None:
    assert CronExpression.parse(text).next(datetime.fromisoformat(after), UTC) == datetime.fromisoformat(following)


@pytest.mark.parametrize(
    ("after", "following"),
    [
        ("2026-03-28T12:00Z", "2026-03-29T01:00Z"),  # 02:30 is skipped: the first minute after it
        ("2026-10-24T12:00Z", "2026-10-25T00:30Z"),  # the first 02:30
        ("2026-10-25T00:30Z", "2026-10-26T01:30Z"),  # the second one is none
    ],
)
def test_a_change_of_the_clock(after: str, following: str) -> None:
    assert CronExpression.parse("30 2 * * *").next(datetime.fromisoformat(after), BERLIN) == datetime.fromisoformat(
        following
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "60 * * * *",
        "* * 0 * *",
        "5-1 * * * *",
        "*/0 * * * *",
        "0 0 30 2 *",
        "x * * * *",
        "1- * * * *",
        "* * * * 8",
        "²  * * * *",
    ],
)
def test_an_expression_that_never_holds_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match="no cron expression") as refusal:
        CronExpression.parse(text)
    assert refusal.value.code == "CRON_MALFORMED"


def test_a_29_february_on_one_day_of_the_week_is_found_also_over_2100() -> None:
    sundays = CronExpression.parse("0 0 29 2 */7")
    assert sundays.next(datetime(2033, 1, 1, tzinfo=UTC), UTC) == datetime(2060, 2, 29, tzinfo=UTC)
    assert sundays.next(datetime(2089, 1, 1, tzinfo=UTC), UTC).year - 2089 < 40
