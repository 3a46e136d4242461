"""The table of states, exhaustively; who may end whose pause."""

from itertools import product

import pytest

from core.errors import Conflict, Forbidden
from core.jobs.states import NEXT, VERB_MEANINGS, Actor, JobState, Verb, check_actor, next_state

STATES = (None, *JobState)


@pytest.mark.parametrize(("verb", "state"), list(product(Verb, STATES)))
def test_a_verb_applies_to_the_states_of_the_table_only(verb: Verb, state: JobState | None) -> None:
    if state in NEXT[verb]:
        assert next_state(verb, state) is NEXT[verb][state]
    else:
        with pytest.raises(Conflict) as refusal:
            next_state(verb, state)
        assert refusal.value.code == ("JOB_ALREADY_RUNNING" if verb is Verb.START else "JOB_IN_OTHER_STATE")


def test_every_state_but_stopped_can_be_left_and_every_verb_is_explained() -> None:
    assert {state for before in NEXT.values() for state in before} == set(STATES)
    assert VERB_MEANINGS.keys() == set(Verb)


@pytest.mark.parametrize(("actor", "paused_by"), list(product(Actor, Actor)))
def test_a_pause_is_ended_only_by_the_same_or_a_higher_actor(actor: Actor, paused_by: Actor) -> None:
    order = [Actor.LIMIT, Actor.SIGN_IN, Actor.USER, Actor.ADMIN]
    if order.index(actor) >= order.index(paused_by):
        check_actor(actor, paused_by)
    else:
        with pytest.raises(Forbidden) as refusal:
            check_actor(actor, paused_by)
        assert refusal.value.code == "JOB_PAUSED_BY_OTHER"
