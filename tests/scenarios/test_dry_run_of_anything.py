"""Whatever an author and an event contain, a dry run ends with an outcome for every action."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.actions import own_actions
from scenarios.bot import ANY, Action, Bot, Place, Role, Scenario, Target, Trigger, Triggers, no_triggers
from scenarios.check.dry_run import dry_run
from scenarios.engine import OUTCOMES
from tests.support.hypothesis_settings import SETTINGS

PLACE = Place("s.yaml")
WORDS = ("", "main", "s.main", "{event_text}", "{x|regex:(}", "{a.b.0}", "regex", "fail", "https://a.example", "any")
FIELDS = sorted({name for kind in own_actions().values() for name in kind.field_names()} - {"type"})
RULE_PARTS = ("rule", "value", "on_error", "x", "event_text", "text")

scalars = (
    st.none() | st.booleans() | st.integers(-3, 10_000) | st.floats() | st.sampled_from(WORDS) | st.text(max_size=5)
)
keys = st.sampled_from(RULE_PARTS) | st.text(max_size=3)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)
fields = st.dictionaries(st.sampled_from(FIELDS), values, max_size=4)
chains = st.sampled_from([None, ANY, frozenset({"failed"}), frozenset({"completed"})])
types = st.sampled_from([*own_actions(), "send", "validator", "scenario", "unknown", ""])


@st.composite
def actions(draw: st.DrawFn) -> Action:
    placeholder = draw(st.sampled_from([None, True, False]))
    return Action(draw(types), draw(fields), PLACE, draw(chains), placeholder=placeholder)


def bot_of(steps: list[Action], settings: Any) -> Bot:
    main = Scenario("s.main", "main", tuple(steps), PLACE)
    always = {**no_triggers().text, "*": (Trigger("", (Target("s.main"),), PLACE),)}
    triggers = Triggers(always, no_triggers().callback, no_triggers().new_member)
    roles = {"main": Role("main", permissions=("any",), users=(7,))}
    return Bot({"s.main": main}, {"main": ("s.main",)}, triggers, triggers, roles=roles, settings=settings)


@settings(SETTINGS)
@given(
    steps=st.lists(actions(), min_size=1, max_size=4),
    event=st.dictionaries(st.sampled_from(["user_id", "event_text", "chat_id", "chat_type", "text"]), values),
    changed=st.dictionaries(st.sampled_from(["send", "validator", "scenario"]), values, max_size=1),
)
def test_every_action_of_a_dry_run_has_an_outcome(
    steps: list[Action], event: dict[str, Any], changed: dict[str, Any]
) -> None:
    result = dry_run(bot_of(steps, changed), event)
    assert len(result.rows) >= len(steps)
    waits = any(row.why == "it waits for an answer" for row in result.rows)
    assert {row.outcome for row in result.rows} <= OUTCOMES | ({"pending", "hold"} if waits else set())
    assert all(row.why for row in result.rows)
