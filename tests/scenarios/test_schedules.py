"""Schedules: when they are due, how they are checked, and how a bot's tests play them (C-96)."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from core.model.cron import CronExpression
from scenarios.bot.times import ScheduleFault, read_time
from scenarios.check import check
from scenarios.loader import load
from scenarios.testing.bot_tests import run_tests
from tests.scenarios.bot_folder import BotFolder
from tests.scenarios.loader.folder import with_russian

MOSCOW, BERLIN = ZoneInfo("Europe/Moscow"), ZoneInfo("Europe/Berlin")


def after(words: str, moment: str, zone: ZoneInfo = MOSCOW) -> str:
    found = CronExpression.parse(read_time(words)).next(datetime.fromisoformat(moment).replace(tzinfo=zone), zone)
    return f"{found.astimezone(zone):%Y-%m-%d %H:%M}"


@pytest.mark.parametrize(
    ("words", "moment", "due"),
    [
        ("each Monday 8:00", "2026-11-22 12:00", "2026-11-23 08:00"),
        ("Monday 8:00", "2026-11-23 08:00", "2026-11-30 08:00"),
        ("mon, Thursday 18:30", "2026-11-24 00:00", "2026-11-26 18:30"),
        ("every day 18:00", "2026-11-22 18:00", "2026-11-23 18:00"),
        ("weekdays 9:00", "2026-11-27 10:00", "2026-11-30 09:00"),
        ("0 8 * * MON", "2026-11-22 12:00", "2026-11-23 08:00"),
        ("*/20 6-7 1 jan,jul *", "2026-11-22 12:00", "2027-01-01 06:00"),
        ("0 0 29 2 *", "2026-11-22 12:00", "2028-02-29 00:00"),
        ("0 0 13 * 5", "2026-11-13 12:00", "2026-11-20 00:00"),
        ("0 12 * * 0", "2026-11-22 12:00", "2026-11-29 12:00"),
        ("0 12 * * fri-sun", "2026-11-22 12:00", "2026-11-27 12:00"),
        ("0 12 * * fri-7", "2026-11-27 12:00", "2026-11-28 12:00"),
        ("0 12 * * monday", "2026-11-22 12:00", "2026-11-23 12:00"),
        ("по будням в 9:00", "2026-11-27 10:00", "2026-11-30 09:00"),
    ],
)
def test_words_and_cron_name_the_next_moment(words: str, moment: str, due: str) -> None:
    assert after(words, moment) == due


def test_a_time_that_the_clock_skips_is_due_after_the_skip() -> None:
    assert after("day 2:30", "2026-03-28 12:00", BERLIN) == "2026-03-29 03:00"


@pytest.mark.parametrize(
    "words", ["soon", "Mnday 8:00", "0 8 * *", "0 25 * * *", "*/0 * * * *", "0 0 32 * *", "0 0 30 2 *"]
)
def test_what_is_no_time_is_refused(words: str) -> None:
    with pytest.raises(ScheduleFault):
        read_time(words)


@pytest.fixture
def bot(tmp_path: Path) -> BotFolder:
    folder = BotFolder(tmp_path).write("variables.yaml", "person: {exam: date, room: text}")
    return folder.actions("    - {type: set, variables: {person.exam: 12.12.2026}}")


def test_the_check_explains_wrong_schedules(bot: BotFolder) -> None:
    bot.write(
        "schedule.yaml",
        """
a: {each: Mnday 8:00, scenario: s.main}
b: {scenario: s.main}
c: {before: person.room, scenario: s.main}
d: {each: day 8:00, scenario: s.man, for: everyone}
e: {each: day 8:00, scenario: s.main, when: {person.rom: {rule: empty}}, fr: people}
f: {each: day 8:00, scenario: s.main, for: everyone}
""",
    )
    assert [(one.line, one.code) for one in with_russian(check(bot.folder).problems)] == [
        (2, "BAD_SCHEDULE"),
        (3, "MISSING_FIELD"),
        (4, "UNKNOWN_VARIABLE"),
        (5, "UNKNOWN_SCENARIO"),
        (6, "UNKNOWN_VARIABLE"),
        (6, "UNKNOWN_FIELD"),
        (7, "WRONG_TYPE"),
    ]


async def test_the_tests_of_a_bot_play_its_schedules(bot: BotFolder) -> None:
    bot.write(
        "schedule.yaml",
        """
daily: {each: day 18:00, for: people, when: {person.room: {rule: empty}}, scenario: s.hello}
exam: {before: person.exam, by: 1d, time: 10:00, scenario: s.exam}
report: {each: Monday 8:00, scenario: s.report}
""",
    )
    bot.write(
        "scenarios/s.yaml",
        """
main: {actions: [{type: set, variables: {person.exam: 12.12.2026}}]}
hello: {actions: [{type: send, text: "Hello {first_name|fallback:you}"}]}
exam: {actions: [{type: send, text: "Tomorrow!"}]}
report: {actions: [{type: send, text: Report, to: {group: office}}]}
""",
    )
    bot.write(
        "tests/a.yaml",
        """
t:
  at: 2026-12-10 12:00
  steps:
    - user: x
    - wait: 2d
    - bot: [Hello you, Tomorrow!, Hello you]
    - wait: 2d
    - bot: [Hello you, Hello you, {text: Report, to: {group: office}}]
""",
    )
    assert [one.problem for one in (await run_tests(bot.folder, load(bot.folder).bot))[0]] == [""]
    assert check(bot.folder).problems == ()
