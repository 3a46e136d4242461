"""Durations as bot authors write them."""

from datetime import timedelta

import pytest

from scenarios.bot import Action, Place
from scenarios.bot.data import Data
from scenarios.bot.times import read_duration
from scenarios.engine import Values
from scenarios.placeholders.attributes import prepare

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("written", "duration"),
    [
        ("1w 2d 3h 15m 10s", 9 * DAY + timedelta(hours=3, minutes=15, seconds=10)),
        ("2D", 2 * DAY),
        ("1h30m", timedelta(minutes=90)),
        (600, timedelta(minutes=10)),
        ("600", timedelta(minutes=10)),
        (0, timedelta()),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(written: Data, duration: timedelta) -> None:
    assert read_duration(written) == duration


@pytest.mark.parametrize("written", ["", None, True, "soon", "1x", "-5", "1.5h", "999999999w"])
def test_anything_else_is_no_duration(written: Data) -> None:
    assert read_duration(written) is None


def test_a_duration_of_any_action_is_also_there_in_seconds() -> None:
    action = Action("validator", {"duration": "{given}", "expire": "1d"}, Place("s.yaml"), placeholder=True)
    prepared = prepare(action, {}, Values({"given": "1m 30s"}), {})
    assert (prepared.seen["duration_seconds"], prepared.seen["expire_seconds"]) == (90, 86_400)
    assert prepared.returned.variables["duration_seconds"] == 90  # later actions have it, too
    written = Action("restrict", {"duration": "soon", "duration_seconds": 7}, Place("s.yaml"))
    assert prepare(written, {}, Values(), {}).seen["duration_seconds"] == 7
