"""Chains on a real server: what an author wrote is executed, stored and sent, and can be read afterwards."""

import asyncio
from datetime import timedelta

import pytest

from core.errors import StoreUnavailable
from core.model.people import Group, User
from core.redis.store import Store
from core.updates.events import identity, person_of
from scenarios.context import Context
from scenarios.engine import Ending, completed
from scenarios.execution.active_bot import ActiveBot
from scenarios.execution.runs import RunGone, Runs, run_id
from scenarios.execution.versions import Versions
from scenarios.schema import ActionType, Attributes
from tests.scenarios.execution.conftest import PERSON, WITHIN, Installation, states
from tests.support.stack import HOUR, TENANT
from tests.support.waiting import until


async def test_a_chain_sends_its_messages_in_order(installation: Installation) -> None:
    installation.actions("""
    - {type: send, text: "Привет, {event_text}"}
    - {type: send, text: "id {last_message_id}", chain: completed}
    - {type: send, text: "never", chain: failed}
    - {type: send, text: "after the skipped one", chain: drop}
""")
    await installation.start()
    run = await installation.play("мир")
    assert installation.texts == ["Привет, мир", "id 101", "after the skipped one"]
    assert states(run) == ["completed", "completed", "drop", "completed"]


async def test_actions_without_a_chain_are_sent_in_the_order_of_the_file(installation: Installation) -> None:
    installation.actions("\n".join(f"    - {{type: send, text: m{n}}}" for n in range(6)))
    await installation.start()
    await installation.play()
    assert installation.texts == [f"m{n}" for n in range(6)]


async def test_scenarios_are_spliced_in_and_an_unknown_one_is_reported(installation: Installation) -> None:
    installation.write("triggers.yaml", 'text: {"*": s.main}')
    installation.write(
        "scenarios/s.yaml",
        """
main:
  actions:
    - {type: scenario, value: inner}
    - {type: send, text: "after inner", chain: completed}
    - {type: scenario, value: nowhere}
    - {type: send, text: "{error}", chain: failed}
    - {type: scenario, value: [inner, other.branch]}
inner:
  actions:
    - {type: send, text: inner}
""",
    )
    installation.write("scenarios/other.yaml", "branch: {actions: [{type: send, text: branch}]}")
    await installation.start()
    run = await installation.play()
    assert sorted(installation.texts) == ["after inner", "branch", "inner", "inner", "нет сценария 'nowhere'"]
    assert installation.texts.index("inner") < installation.texts.index("after inner")
    assert run.state == "over"


async def test_conditions_and_branches_choose_what_is_sent(installation: Installation) -> None:
    installation.write("triggers.yaml", 'text: {"*": s.main}')
    installation.write(
        "scenarios/s.yaml",
        """
main:
  actions:
    - {type: send, text: many, when: {event_text: {rule: more_than, value: 10}}}
    - {type: send, text: few, chain: drop}
    - type: branch
      chain: true
      cases: [{when: {event_text: {rule: between, value: [5, 8]}}, scenario: middle}]
middle: {actions: [{type: send, text: "{event_text} is in the middle"}]}
""",
    )
    await installation.start()
    run = await installation.play("7")
    assert installation.texts == ["few", "7 is in the middle"]
    assert "more_than does not hold" in run.actions[0].why


async def test_a_loop_over_the_people_of_a_group_sends_to_each(installation: Installation) -> None:
    for number, name in ((1, "Anna"), (2, "Boris")):
        await installation.directory.users.create(TENANT, User(number, name, contacts={"echo": [f"a{number}"]}))
    await installation.directory.groups.create(TENANT, Group("A", "A"), [1, 2])
    installation.write("triggers.yaml", 'text: {"*": s.main}')
    installation.write(
        "scenarios/s.yaml",
        """
main:
  actions:
    - {type: for_each, group: A, as: person, with: {what: "{event_text}"}, scenario: one}
    - {type: send, text: "{count} people", chain: completed}
one: {actions: [{type: send, to: {id: "{person.id}"}, text: "{person.name}: {what}"}]}
""",
    )
    await installation.start()
    run = await installation.play("Tea")
    assert sorted(installation.texts) == ["2 people", "Anna: Tea", "Boris: Tea"]
    assert states(run) == ["completed"] * 4


async def test_the_events_of_a_person_are_answered_in_order_and_others_do_not_wait(installation: Installation) -> None:
    opened, entered = asyncio.Event(), asyncio.Event()

    async def execute(context: Context, attributes: Attributes) -> Ending:
        if context.event["event_text"] == "wait":
            entered.set()
            await opened.wait()
        return completed()

    installation.types["wait"] = ActionType("wait", "", execute=execute)
    installation.actions('    - {type: wait}\n    - {type: send, text: "{event_text}", chain: completed}')
    await installation.start()
    await installation.put("wait")
    await asyncio.wait_for(entered.wait(), WITHIN)
    last = await installation.put("second")
    await installation.play("another person", user_id="8", chat_id="8")
    assert installation.texts == ["another person"]
    opened.set()
    await installation.over(last)
    assert installation.texts == ["another person", "wait", "second"]


async def test_an_action_that_raises_fails_with_its_error_and_the_others_run(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    async def execute(context: Context, attributes: Attributes) -> Ending:
        raise ValueError("the dice fell from the table")

    installation.types["dice"] = ActionType("dice", "", execute=execute)
    installation.actions("""
    - {type: dice}
    - {type: send, text: "{error}", chain: failed}
    - {type: unknown_action}
    - {type: send, text: "{error}", chain: failed}
""")
    await installation.start()
    run = await installation.play()
    assert states(run) == ["failed", "completed", "failed", "completed"]
    assert installation.texts[0] == "ValueError: the dice fell from the table"
    assert "unknown_action" in installation.texts[1]
    assert "scenarios/s.yaml, line 4" in caplog.text


async def test_an_outage_of_the_store_in_an_action_is_tried_again(installation: Installation) -> None:
    attempts = []

    async def execute(context: Context, attributes: Attributes) -> Ending:
        attempts.append(context.identity)
        if len(attempts) == 1:
            raise StoreUnavailable("down")
        return completed()

    installation.types["shaky"] = ActionType("shaky", "", execute=execute)
    installation.actions("    - {type: shaky}")
    await installation.start()
    assert states(await installation.play()) == ["completed"]
    assert len(attempts) == 2
    assert len(set(attempts)) == 1


async def test_an_action_that_returns_too_much_fails(installation: Installation) -> None:
    async def execute(context: Context, attributes: Attributes) -> Ending:
        return completed({"much": "x" * 300_000})

    installation.types["talkative"] = ActionType("talkative", "", execute=execute)
    installation.actions("    - {type: talkative}")
    await installation.start()
    run = await installation.play()
    assert states(run) == ["failed"]
    assert "300" in run.actions[0].error


async def test_a_scenario_that_splices_itself_ends_and_the_log_names_the_loop(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    installation.actions("    - {type: scenario, value: main}")
    await installation.start()
    run = await installation.play()
    assert states(run)[-1] == "failed"
    assert "s.main → s.main" in caplog.text


async def test_an_event_without_a_trigger_begins_no_run(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    installation.actions("    - {type: send, text: x}")
    installation.write("triggers.yaml", "text: {exact: {a: s.main}}")
    await installation.start()
    run = await installation.put("b")
    await until(lambda: "no trigger matches" in caplog.text, within=WITHIN)
    assert not await installation.exists(run)


async def test_a_run_that_was_begun_goes_on_if_its_event_would_start_nothing_now(installation: Installation) -> None:
    """The first attempt has changed the person's state, and was given back when its process stopped."""
    installation.actions("    - {type: send, text: x}")
    installation.write("triggers.yaml", "text: {state: {asked: s.main}}")
    active, stack = ActiveBot(installation.folder), installation.stack
    versions = Versions(stack.store)
    event = {"id": "e1", "source": "test", "channel": "echo", "user_id": PERSON, "event_text": "b"}
    run, person = run_id(TENANT, identity(TENANT, event), person_of(event), stack.store.shards), person_of(event)
    version = await versions.current(active.version, active.bot)
    await Runs(stack.store, versions, TENANT).begin(run, "0.1", person, event, version, ["s.main"])
    await installation.start()
    assert await installation.put_event(event) == run
    assert states(await installation.over(run)) == ["completed"]
    assert installation.texts == ["x"]


async def test_a_run_ends_on_the_version_with_which_it_began_in_another_process(installation: Installation) -> None:
    opened, entered = asyncio.Event(), asyncio.Event()

    async def execute(context: Context, attributes: Attributes) -> Ending:
        entered.set()
        await opened.wait()
        return completed()

    installation.types["wait"] = ActionType("wait", "", execute=execute)
    installation.actions("    - {type: wait}\n    - {type: send, text: old, chain: completed}")
    first = await installation.start(lease=timedelta(seconds=1))
    run = await installation.put()
    await asyncio.wait_for(entered.wait(), WITHIN)
    await first.kill()
    installation.actions("    - {type: send, text: new}")
    opened.set()
    await installation.start(lease=timedelta(seconds=1))
    await installation.over(run)
    await installation.play(user_id="8", chat_id="8")
    assert installation.texts == ["old", "new"]


async def test_a_finished_run_is_dropped_after_its_retention(installation: Installation) -> None:
    installation.actions("    - {type: send, text: x}")
    running = await installation.start()
    run = (await installation.play()).id
    await running.stop()
    store = installation.stack.store
    runs = Runs(store, Versions(store), TENANT)
    await runs.drop_ended()
    assert await installation.exists(run)
    installation.stack.advance_clock(31 * 24 * HOUR)
    await runs.drop_ended()
    assert not await installation.exists(run)
    with pytest.raises(RunGone):
        await runs.load(run)


async def test_of_two_writers_of_an_ending_the_first_one_counts(installation: Installation) -> None:
    installation.actions("    - {type: unknown_action}\n    - {type: unknown_action, chain: failed}")
    running = await installation.start()
    run = (await installation.play()).id
    await running.stop()
    other = await Store.open(installation.stack.server.url)
    runs = Runs(other, Versions(other), TENANT)
    stored = await runs.load(run)
    assert await other.run("save_run", 0, run, stored.entries - 1, 0, 0, "[]") == "stale"
    assert (await runs.record(stored, (0, 0), completed())).run.steps[0, 0].ending == stored.run.steps[0, 0].ending
    await other.close()


async def test_the_actions_of_a_failure_and_of_an_else_are_sent_before_the_next_one(installation: Installation) -> None:
    installation.actions("""
    - type: validator
      rules: {event_text: [{rule: equals, value: yes}]}
      step: checked
      on_failure: [{type: send, text: "No: {event_text}"}, {type: send, text: "{last_message_id}", chain: completed}]
    - {type: send, text: never, when: {event_text: {rule: empty}}, chain: true, otherwise: [{type: send, text: else}]}
    - {type: send, text: after, after: checked, chain: failed}
""")
    await installation.start()
    run = await installation.play("maybe")
    assert installation.texts[:2] == ["No: maybe", "101"]
    assert sorted(installation.texts[2:]) == ["after", "else"]
    assert states(run) == ["failed", "completed", "completed", "drop", "completed", "completed"]


@pytest.mark.parametrize(
    ("rest", "is_logged"),
    [
        ("", True),
        ("    - {type: send, text: x, chain: failed}\n", False),
        ("    - {type: send, text: x, chain: completed}\n    - {type: send, text: y, chain: [failed, drop]}\n", False),
        ("    - {type: send, text: x, chain: completed}\n    - {type: send, text: y, chain: failed}\n", True),
        ("    - {type: send, text: x, chain: completed}\n    - {type: send, text: y, chain: true}\n", True),
    ],
)
async def test_a_refusal_is_logged_unless_an_action_is_for_it(
    installation: Installation, caplog: pytest.LogCaptureFixture, rest: str, is_logged: bool
) -> None:
    """It was logged although the last action of a form told the person, behind others that are dropped."""
    installation.actions("    - {type: send, text: x, to: {group: nowhere}}\n" + rest)
    await installation.start()
    await installation.play()
    assert ("neither on_failure nor chain: failed" in caplog.text) is is_logged
