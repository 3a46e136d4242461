"""The table of states: every transition it names happens, and every other one is refused."""

from itertools import product

import pytest

from scenarios.engine import IllegalMove, State, begin, end
from scenarios.engine.run import CAUSE_MEANINGS, NEXT, OUTCOMES, VERB_MEANINGS, Cause, may_move
from tests.scenarios.engine.play import action, ending, scenario

STATES = [None, *State]
PAIRS = [
    pytest.param(verb, before, after, id=f"{verb}: {before} to {after}")
    for verb, before, after in product(NEXT, STATES, State)
]


@pytest.mark.parametrize(("verb", "before", "after"), PAIRS)
def test_a_move_is_possible_exactly_if_the_table_has_it(verb: str, before: State | None, after: State) -> None:
    assert moves_of(verb, before, after) is may_move(verb, before, after)


def moves_of(verb: str, before: State | None, after: State) -> bool:
    """Whether the engine makes this move in one of the situations of `SITUATIONS`."""
    return any((verb, before, after) in seen_moves(outcome) for outcome in OUTCOMES)


def seen_moves(outcome: State) -> set[tuple[str, State | None, State]]:
    """All moves of a run whose first action ends so, and that has one action for each way to leave hold."""
    waiting = [action(f"waits_for_{wanted}", chain=wanted) for wanted in sorted(OUTCOMES)]
    threads = [scenario(f"s{number}", action("first"), one) for number, one in enumerate(waiting)]
    run, _ = begin(threads)
    moves: set[tuple[str, State | None, State]] = {("create", None, step.state) for step in run.in_order}
    for number in range(len(threads)):
        before = run
        run, effects = end(run, (number, 0), ending(outcome))
        moves.add(("end", before.steps[(number, 0)].state, run.steps[(number, 0)].state))
        moves |= {("release", before.steps[path].state, run.steps[path].state) for path in effects.released}
        moves |= {("drop", before.steps[path].state, run.steps[path].state) for path in effects.dropped}
    return moves


def test_a_held_action_cannot_be_ended_from_outside() -> None:
    run, _ = begin([scenario("s", action("a"), action("b", chain="any"))])
    with pytest.raises(IllegalMove, match="hold to completed"):
        end(run, (0, 1), ending("completed"))


@pytest.mark.parametrize("second", sorted(OUTCOMES))
def test_an_action_that_is_ended_twice_keeps_its_first_outcome_and_wakes_nothing_again(second: State) -> None:
    run, _ = begin([scenario("s", action("a"), action("b", chain="any"))])
    run, first = end(run, (0, 0), ending("completed", x=1))
    again, effects = end(run, (0, 0), ending(second, x=2))
    assert first.released == ((0, 1),)
    assert again == run
    assert effects.released == effects.dropped == ()


def test_each_verb_and_each_cause_has_a_meaning_for_the_docs() -> None:
    assert set(VERB_MEANINGS) == set(NEXT)
    assert set(CAUSE_MEANINGS) == set(Cause)
