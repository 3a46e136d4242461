"""Moments in the zone of the installation: what a person may write for one, and what is shown."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from cli.client.local_times import in_zone, read_moment
from cli.command import CommandFailed

BERLIN = ZoneInfo("Europe/Berlin")


def test_a_moment_is_read_as_people_write_it_in_the_zone_of_the_installation() -> None:
    tomorrow = datetime.now(BERLIN).date() + timedelta(days=1)
    read = {
        "tomorrow 9:00": datetime(tomorrow.year, tomorrow.month, tomorrow.day, 9, tzinfo=BERLIN),
        "завтра в 9:00": datetime(tomorrow.year, tomorrow.month, tomorrow.day, 9, tzinfo=BERLIN),
        "25.12.2099 14:30": datetime(2099, 12, 25, 13, 30, tzinfo=UTC),
        "2099-12-25T14:30": datetime(2099, 12, 25, 13, 30, tzinfo=UTC),
        "2099-12-25 14:30": datetime(2099, 12, 25, 13, 30, tzinfo=UTC),
        "2099-12-25T14:30:00+03:00": datetime(2099, 12, 25, 11, 30, tzinfo=UTC),
        "2099-12-25T14:30:00Z": datetime(2099, 12, 25, 14, 30, tzinfo=UTC),
    }
    assert {text: read_moment("at", text, BERLIN) for text in read} == read
    midnight = read_moment("at", "0:00", BERLIN)
    assert datetime.now(UTC) < midnight <= datetime.now(UTC) + timedelta(hours=25), "the next one"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("25:00", "--at '25:00' is no time: write 14:30, 'tomorrow 9:00'"),
        ("soon", "--at 'soon' is no time"),
        ("31.02 9:00", "is no time"),
        ("2026-12-01", "--at '2026-12-01' is no time"),
        ("0001-01-01T00:00", "is no time"),
        ("25.11.2020 9:00", "--at: 25.11.2020 9:00 has passed"),
        ("25.03.2096 02:30", "--at: the clock is put forward over 02:30 of that day"),
    ],
)
def test_what_is_no_moment_is_refused_with_examples(text: str, message: str) -> None:
    with pytest.raises(CommandFailed, match=message):
        read_moment("at", text, BERLIN)


def test_moments_are_those_of_the_zone_and_nothing_else_is_changed() -> None:
    found = {
        "created_at": "2026-10-25T00:30:00.123Z",
        "next": ["2026-10-25T01:30:00Z"],
        "text": "2026-10-25T00:30:00Z",
        "recipients": [{"id": "at", "outcomes": {"sms": {"at": None, "not_before": "2026-07-01T00:00:00Z"}}}],
        "page": {"next": "n100", "until": ""},
    }
    assert in_zone(found, ZoneInfo("Europe/Berlin")) == {
        "created_at": "2026-10-25 02:30:00+02:00",
        "next": ["2026-10-25 02:30:00+01:00"],
        "text": "2026-10-25T00:30:00Z",
        "recipients": [{"id": "at", "outcomes": {"sms": {"at": None, "not_before": "2026-07-01 02:00:00+02:00"}}}],
        "page": {"next": "n100", "until": ""},
    }
