"""The table of `./ada queue stats`."""

from typing import Any

from cli.commands.installation.queue import format_stats
from core.queue import QueueStats, StateCounts, TubeStats

NOTHING: dict[str, Any] = {"due": 0, "taken": 0, "buried": 0, "finished": 0, "overdue_ms": 0}


def tube(oldest_ms: float, lag_ms: float, done: int = 0, **states: int) -> TubeStats:
    counts = StateCounts(**{**dict.fromkeys(StateCounts.__struct_fields__, 0), **states})
    return TubeStats(done=done, live=0, oldest_ms=int(oldest_ms), lag_ms=lag_ms, states=counts)


def test_columns_are_as_wide_as_needed_and_those_of_nothing_are_left_out() -> None:
    tubes = {"sms": tube(12.4, 0, done=4), "jobs.price": tube(517_000, 50_031.2, ready=1, buried=1_000_000)}
    assert format_stats(QueueStats(**{**NOTHING, "tubes": tubes})).splitlines() == [
        "tube        ready   buried  done    oldest     lag",
        "sms             0        0     4     12 ms    0 ms",
        "jobs.price      1  1000000     0  8:37 min  50.0 s",
    ]


def test_an_empty_queue_has_no_table_of_zeros() -> None:
    assert format_stats(QueueStats(**NOTHING, tubes={})) == "there is no tube"
