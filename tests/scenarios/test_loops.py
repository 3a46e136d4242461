"""Loops, and parameters of scenarios that are called by others (C-98)."""

from pathlib import Path

import pytest

from scenarios.check import check
from scenarios.check.dry_run import dry_run
from scenarios.engine import Ending, Splice, State, begin, end
from scenarios.execution import runs
from scenarios.loader import load
from tests.scenarios.bot_folder import BotFolder
from tests.scenarios.engine.play import action, ending, scenario

SCENARIOS = """
main:
  actions:
    - {type: for_each, items: "{event_text}", scenario: one, as: room, with: {building: "{first_name}"}}
    - {type: scenario, value: greet, with: {greeting: "Hi {event_text}", times: 2}, chain: completed}
    - {type: send, text: "{count}, {said}", chain: completed}
one: {actions: [{type: send, text: "{number}. {room} in {building}"}, {type: send, text: "{room}!", chain: completed}]}
greet:
  actions:
    - {type: validator, said: "{greeting} ({times})", placeholder: true}
    - {type: send, text: "{greeting}", chain: completed}
"""


@pytest.fixture
def bot(tmp_path: Path) -> BotFolder:
    folder = BotFolder(tmp_path).write("triggers.yaml", 'text: {"*": s.main}')
    return folder.write("scenarios/s.yaml", SCENARIOS)


def texts(bot: BotFolder, text: str) -> list[str]:
    result = dry_run(load(bot.folder).bot, {"user_id": 1, "event_text": text, "first_name": "<A> {b}"})
    return [row.send.text for row in result.rows if row.send]


def test_a_loop_and_a_call_hand_over_parameters_as_words_of_people(bot: BotFolder) -> None:
    each = [f"{n}. {room} in &lt;A&gt; {{b}}" for n, room in ((1, "12"), (2, "14 &lt;"))]
    found = texts(bot, "12, 14 <")
    assert found[:4] == [each[0], "12!", each[1], "14 &lt;!"]
    assert found[4:] == ["Hi 12, 14 &lt;", "2, Hi 12, 14 &lt; (2)"]
    assert check(bot.folder).problems == ()


def test_a_loop_is_bounded(bot: BotFolder) -> None:
    result = dry_run(load(bot.folder).bot, {"user_id": 1, "event_text": ",".join(["x"] * 101)})
    assert result.rows[0].why.endswith("there are 101 items, at most 100 are allowed")


def test_an_unknown_scenario_or_parameter_is_reported(bot: BotFolder) -> None:
    bot.write("scenarios/s.yaml", SCENARIOS.replace("{times}", "{tmes}"))
    assert [(one.code, one.line) for one in check(bot.folder).problems] == [("UNKNOWN_PLACEHOLDER", 10)]
    bot.write("scenarios/s.yaml", SCENARIOS.replace("scenario: one", "scenario: oen"))
    assert ("UNKNOWN_SCENARIO", 4) in [(one.code, one.line) for one in check(bot.folder).problems]


COLLECTING = """
main:
  actions:
    - {type: for_each, items: "{event_text}", scenario: one, collect: [verdict], at_once: 2}
    - {type: send, text: "{count}: {results[0].item} {results[0].verdict} {results[1].outcome} {results[2].number}",
       chain: completed}
one:
  actions:
    - {type: scenario, value: two}
two:
  actions:
    - {type: send, text: "{item}"}
    - {type: validator, rules: {item: [{rule: length_max, value: 1}]}, chain: completed}
"""


def test_the_next_action_gets_the_results_of_all_runs(bot: BotFolder) -> None:
    bot.write("scenarios/s.yaml", COLLECTING)
    assert check(bot.folder).problems == ()
    assert texts(bot, "a, bb, c") == ["a", "bb", "c", "3: a all_reached failed 3"]
    uncollected = COLLECTING.replace("collect: [verdict], ", "").replace("{results[0].verdict} ", "")
    bot.write("scenarios/s.yaml", uncollected)
    assert texts(bot, "a, bb, c")[-1] == "3: a failed 3", "it waits also without what it collects"


def test_only_so_many_runs_of_a_loop_are_under_way_at_the_same_time() -> None:
    inner = scenario("inner", action("ask"), action("say", chain="completed"))
    loop = Splice((inner,) * 5, True, tuple({"item": n} for n in range(5)), ("heard",), 2)
    outer = scenario("outer", action("loop"), action("end", chain="completed"))
    run, effects = begin([outer])
    ready, most, seen = list(effects.released), 0, []
    while ready:
        path = ready.pop()
        step = run.steps[path]
        seen.append(f"{step.action.type} {path[2:3]}")
        most = max(most, sum(one.action.type in ("ask", "say") and not one.is_over for one in run.steps.values()))
        ends = {
            "loop": Ending(State.COMPLETED, splice=loop),
            "ask": ending("failed" if path[2:] == (1, 0) else "completed", heard=path),
        }
        run, effects = end(run, path, ends.get(step.action.type, ending("completed")))
        ready += effects.released
    assert (run.is_over, most, seen[-1]) == (True, 4, "end ()")  # two runs of two actions each
    results = run.steps[(0, 1)].values.results["results"]
    assert [(one["item"], one["outcome"], one["heard"]) for one in results] == [
        (n, "failed" if n == 1 else "completed", (0, 0, n, 0)) for n in range(5)
    ]


def test_a_loop_that_collects_is_stored_and_read_again_and_nothing_follows_too_early() -> None:
    inner = scenario("inner")
    outer = scenario("outer", action("loop"), action("end", chain="completed"))
    run, _ = begin([outer])
    for count in (0, 3):  # no items; runs without actions
        after, effects = end(
            run, (0, 0), Ending(State.COMPLETED, splice=Splice((inner,) * count, True, ({},) * count, (), 2))
        )
        assert effects.released == ((0, 1),)
        assert after.steps[(0, 1)].values.results["results"] == [{"outcome": "completed"}] * count
    ending = Ending(State.COMPLETED, splice=Splice((), True, (), ("a",), 2))
    entry = runs.decode_entry(runs.encode_entry((0, 0), ending, 1))
    assert (entry.collect, entry.at_once) == (("a",), 2)
