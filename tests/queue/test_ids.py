"""Ids of tasks."""

import time

import pytest

from core.queue.task_ids import TaskIds, put_ms


@pytest.mark.row("K-23")
def test_ids_of_one_process_sort_by_time_and_ids_of_two_never_collide() -> None:
    one, other = TaskIds(), TaskIds()
    ids = [one.next() for _ in range(5000)]
    assert ids == sorted(set(ids))
    assert abs((put_ms(ids[-1]) or 0) / 1000 - time.time()) < 60
    assert not set(ids) & {other.next() for _ in range(5000)}
