"""Office hours: when they begin next, and how they are written."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from cli.settings.parsing import parse_office_hours
from core.model.hours import OfficeHours, TenantOfficeHours

HOURS = parse_office_hours("mon-fri 09:00-18:00, sat 10:00-13:00")


def at(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "opening"),
    [
        ("2026-11-27 08:59", "2026-11-27 09:00"),
        ("2026-11-27 09:00", None),
        ("2026-11-27 17:59", None),
        ("2026-11-27 18:00", "2026-11-28 10:00"),
        ("2026-11-28 13:00", "2026-11-30 09:00"),
        ("2026-11-29 12:00", "2026-11-30 09:00"),
    ],
)
def test_what_comes_outside_the_hours_is_shown_when_the_next_begin(moment: str, opening: str | None) -> None:
    assert HOURS.next_opening(at(moment)) == (at(opening) if opening else None)


def test_hours_once_a_week_begin_in_a_week() -> None:
    assert parse_office_hours("fri 09:00-10:00").next_opening(at("2026-11-27 10:00")) == at("2026-12-04 09:00")


def test_without_hours_everything_is_shown_at_once() -> None:
    assert parse_office_hours("off").next_opening(at("2026-11-29 03:00")) is None


def test_days_may_cross_the_end_of_the_week() -> None:
    assert parse_office_hours("sat-mon 09:00-18:00").next_opening(at("2026-11-30 10:00")) is None
    assert parse_office_hours("sat-mon 09:00-18:00").next_opening(at("2026-12-01 10:00")) == at("2026-12-05 09:00")


def test_a_tenant_has_the_hours_on_its_own_clock() -> None:
    zone = ZoneInfo("Asia/Vladivostok")
    hours = TenantOfficeHours(OfficeHours(HOURS.openings), {"east": zone})
    assert hours.of("default").next_opening(at("2026-11-27 00:00")) == at("2026-11-27 09:00")
    assert hours.of("east").next_opening(at("2026-11-27 00:00")) is None


@pytest.mark.parametrize("text", ["9-18", "mon-fri", "mon-sol 09:00-18:00", "mon 18:00-09:00", "mon 9:00-18:00"])
def test_hours_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="which"):
        parse_office_hours(text)
