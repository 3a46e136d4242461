"""From which shard a worker claims next: the one that has waited longest, some pages of it, then another."""

import math

from core.queue.workers.claim_schedule import ClaimSchedule


def claimed(schedule: ClaimSchedule, shard: int, now: float, due: float, *, has_backlog: bool = False) -> None:
    schedule.begin(shard, now)
    schedule.note_backlog(shard, has_backlog=has_backlog)
    schedule.end(shard, due)


def test_the_shard_whose_last_claim_is_longest_ago_goes_first() -> None:
    schedule = ClaimSchedule(3)
    assert schedule.due_now(1.0, has_room=True) == [0, 1, 2]
    claimed(schedule, 0, 1.0, 0.0)
    claimed(schedule, 1, 2.0, 9.0)
    assert schedule.due_now(3.0, has_room=True) == [2, 0]
    assert schedule.due_now(9.0, has_room=True) == [2, 0, 1]


def test_a_shard_with_a_backlog_is_due_as_long_as_there_is_room() -> None:
    schedule = ClaimSchedule(2)
    claimed(schedule, 0, 1.0, 5.0, has_backlog=True)
    claimed(schedule, 1, 1.0, 4.0)
    assert schedule.due_now(2.0, has_room=False) == []
    assert schedule.due_now(2.0, has_room=True) == [0]
    assert (schedule.next_moment(has_room=True), schedule.next_moment(has_room=False)) == (0.0, 4.0)
    assert schedule.next_moment(has_room=True, aside=[0]) == 4.0
    assert schedule.next_moment(has_room=True, aside=[0, 1]) == math.inf


def test_a_bell_during_a_claim_is_not_forgotten() -> None:
    schedule = ClaimSchedule(1)
    schedule.begin(0, 1.0)
    assert schedule.due_now(100.0, has_room=True) == []
    schedule.ring(0)
    schedule.end(0, 9.0)
    assert schedule.due_now(2.0, has_room=True) == [0]


def test_a_worker_takes_some_pages_of_a_shard_and_then_those_of_another_that_waits() -> None:
    schedule = ClaimSchedule(2)
    claimed(schedule, 0, 1.0, 5.0, has_backlog=True)
    assert all(schedule.takes_turn(0) for _ in range(20)), "no other shard waits"
    claimed(schedule, 1, 1.0, 5.0, has_backlog=True)
    pages = [schedule.takes_turn(0) for _ in range(8)]
    assert pages.index(False) > 1, "one claim for each page would cost twice as much"
    assert not any(pages[pages.index(False) :]), "until the shard is claimed again"
    claimed(schedule, 0, 2.0, 5.0, has_backlog=True)
    assert schedule.takes_turn(0)


def test_all_idle_shards_are_checked_together() -> None:
    schedule = ClaimSchedule(4)
    for shard, (due, check) in enumerate([(math.inf, 5.0), (math.inf, 6.0), (3.0, 7.0), (8.0, math.inf)]):
        schedule.begin(shard, 1.0)
        schedule.end(shard, due, check)
    assert schedule.next_moment(has_room=True) == 3.0
    assert (schedule.to_check(4.0), schedule.to_check(5.0)) == ([], [0, 1]), "the others are due or keep a timer"
    schedule.ring(0)
    assert schedule.to_check(5.0) == [1]
    schedule.check_by(1, 4.5)
    schedule.check_by(3, 4.5)
    assert (schedule.to_check(4.4), schedule.to_check(4.5)) == ([], [1])
    for shard in (1, 2):
        schedule.begin(shard, 5.0)
        schedule.end(shard, 9.0)
    assert (schedule.to_check(7.0), schedule.next_moment(has_room=True, aside=[0])) == ([], 8.0)
