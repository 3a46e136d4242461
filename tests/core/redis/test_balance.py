"""The moves that balance the load of the primaries of a cluster."""

import pytest

from core.redis.cluster import Move, balancing_moves


@pytest.mark.parametrize(
    ("loads", "owners", "expected"),
    [
        ({0: 5, 1: 5}, {0: "a", 1: "b"}, []),
        ({0: 5, 1: 5}, {0: "a", 1: "a"}, [Move(0, "a", "b")]),
        ({0: 9, 1: 1, 2: 2}, {0: "a", 1: "a", 2: "b"}, [Move(1, "a", "b")]),
        ({0: 100}, {0: "a"}, []),
        ({0: 100, 1: 95}, {0: "a", 1: "b"}, []),
        ({0: 0, 1: 0}, {0: "a", 1: "a"}, []),
    ],
    ids=["balanced", "a new primary", "what fits", "one shard moves in vain", "a small difference", "no load"],
)
def test_moves_go_from_the_most_loaded_primary_to_the_least_loaded(
    loads: dict[int, float], owners: dict[int, str], expected: list[Move]
) -> None:
    assert balancing_moves(loads, owners, {"a", "b"}) == expected


def test_the_moves_of_many_shards_leave_less_difference_than_one_shard_makes() -> None:
    loads = {shard: float(10 + shard) for shard in range(16)}
    places = dict.fromkeys(range(16), "a")
    for move in balancing_moves(loads, places, {"a", "b", "c"}):
        assert places[move.shard] == move.source
        places[move.shard] = move.target
    totals = [sum(loads[shard] for shard, at in places.items() if at == one) for one in "abc"]
    assert max(totals) - min(totals) <= max(loads.values())
    assert balancing_moves(loads, places, {"a", "b", "c"}) == []
