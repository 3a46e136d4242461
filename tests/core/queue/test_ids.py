"""Ids of tasks."""

import time

import pytest

from core.errors import NotFound
from core.queue.task_ids import TaskIds, put_ms, split_id


def test_ids_of_one_process_sort_by_time_and_ids_of_two_never_collide() -> None:
    one, other = TaskIds(), TaskIds()
    ids = [one.next() for _ in range(5000)]
    assert ids == sorted(set(ids))
    assert abs((put_ms(ids[-1]) or 0) / 1000 - time.time()) < 60
    assert not set(ids) & {other.next() for _ in range(5000)}


@pytest.mark.parametrize("task_id", ["", "1", ".a", "1.", "x.a", "-1.a", "100000.a", "1²3.a"])
def test_what_is_no_task_id_names_no_task(task_id: str) -> None:
    with pytest.raises(NotFound):
        split_id(task_id)


def test_a_task_id_begins_with_its_shard_of_at_most_five_digits() -> None:
    assert split_id("0.a.b") == (0, "a.b")
    assert split_id("99999.a") == (99_999, "a")
