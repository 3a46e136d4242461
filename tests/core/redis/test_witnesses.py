"""Whether a promotion can have begun: what the Sentinels, or the other primaries of a cluster, say of it. Pure."""

from typing import Any

import pytest
from redis.exceptions import ResponseError

from core.redis.topology import SentinelSet
from core.redis.witnesses import SentinelWitnesses, Statement, is_sure, is_sure_of_cluster

P, NEW = ("p", 1), ("new", 2)
IDLE, VOTED = Statement(P, epoch=3), Statement(P, epoch=3, has_voted=True)
LEADS = Statement(P, P, epoch=3, has_voted=True)
PROMOTED = Statement(NEW, P, epoch=4)
BEHIND = Statement(NEW, epoch=2)


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([IDLE, IDLE, IDLE], True),
        ([IDLE, IDLE], True),
        ([IDLE], False),  # in the minority of a partition
        ([], False),
        ([IDLE, IDLE, VOTED], True),  # for one that has one vote
        ([IDLE, VOTED], False),  # the third may lead
        ([IDLE, VOTED, VOTED], True),  # none of them leads: the attempt is over
        ([IDLE, VOTED, LEADS], False),
        ([IDLE, IDLE, LEADS], False),  # SENTINEL FAILOVER needs no vote
        ([IDLE, IDLE, PROMOTED], False),
        ([VOTED, VOTED, PROMOTED], False),
        ([IDLE, IDLE, BEHIND], True),
        ([IDLE, VOTED, BEHIND], False),
        ([BEHIND, BEHIND], False),
        ([Statement(P, others=4)] * 2, False),
        ([Statement(P, others=4)] * 3, True),
        ([Statement(P, others=3)] * 2, True),  # the other two are no majority
    ],
)
def test_sentinels_confirm_a_primary_when_no_majority_can_have_voted(
    statements: list[Statement], expected: bool
) -> None:
    assert is_sure(P, statements) is expected


def test_the_new_primary_is_confirmed_while_the_leader_still_sets_up_its_replicas() -> None:
    known = Statement(NEW, epoch=4)
    assert is_sure(NEW, [PROMOTED, known, Statement(P, epoch=3, has_voted=True)])
    assert not is_sure(NEW, [PROMOTED, Statement(P, epoch=3, has_voted=True)])


FACTS: dict[str, Any] = {
    "ip": "p",
    "port": "1",
    "flags": "master",
    "config-epoch": "3",
    "num-other-sentinels": "2",
    "failover-timeout": "20000",
}


def test_a_vote_that_came_to_nothing_is_over_when_its_leader_may_not_go_on() -> None:
    """10 s for the votes and twice failover-timeout, since the vote was seen first; a further vote counts anew."""
    now = [0.0]
    witnesses = SentinelWitnesses(SentinelSet.parse("redis+sentinel://h/ada"), clock=lambda: now[0])
    for now[0], epoch, expected in ((100.0, 3, False), (101.0, 4, True), (151.0, 4, True), (151.1, 4, False)):
        assert witnesses.read([0, "some", epoch], FACTS, ["p", "1"]).has_voted is expected
    assert witnesses.read([0, "some", 5], FACTS, ["p", "1"]).has_voted


def test_a_sentinel_that_refuses_to_say_its_vote_may_have_voted_and_one_without_facts_says_nothing() -> None:
    witnesses = SentinelWitnesses(SentinelSet.parse("redis+sentinel://h/ada"))
    leads = FACTS | {"flags": "master,s_down,o_down,failover_in_progress"}
    assert witnesses.read(ResponseError("NOPERM"), leads, ["new", "2"]) == Statement(NEW, P, 3, has_voted=True)
    with pytest.raises(ResponseError):
        witnesses.read([0, "*", 0], ResponseError("ERR No such master with that name"), None)


def nodes(myself: str, *, a: str = "master", owner: str = "a", size: int = 3) -> str:
    """Return a reply to CLUSTER NODES. `a`: the flags of this node; `owner`: who has its slots."""
    lines = []
    for name in ("a", *"bcdef"[: size - 1], "replica"):
        flags = a if name == "a" else "master" if name != "replica" or owner == "replica" else "slave"
        mine = "myself," if name == myself else ""
        slots = " 0-9" if name == owner or (name not in ("a", "replica")) else ""
        lines.append(f"{name} 127.0.0.1:1@2,,shard-id=x {mine}{flags} - 0 0 1 connected{slots}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("views", "expected"),
    [
        ([nodes("b"), nodes("c")], True),
        ([nodes("b")], True),
        ([], False),  # in the minority of a partition
        ([""], False),
        ([nodes("b", a="master,fail?")], True),  # one suspects it, and votes for nobody yet
        ([nodes("b", a="master,fail")], False),
        ([nodes("b", a="master,fail"), nodes("c")], True),
        ([nodes("b", owner="replica")], False),  # promoted; the old one is not known as a replica yet
        ([nodes("b", a="slave", owner="replica")], False),
        ([nodes("replica")], False),  # it has no vote
        ([nodes("b", size=5)], False),
        ([nodes("b", size=5), nodes("c", size=5)], True),
    ],
)
def test_a_cluster_confirms_a_primary_when_no_majority_can_have_voted(views: list[str], expected: bool) -> None:
    assert is_sure_of_cluster("a", 3, views) is expected
