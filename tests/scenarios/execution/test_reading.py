"""What became of a run: over HTTP and on the command line."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from cli.commands.bots.scenario_runs import lines
from core.errors import Conflict, NotFound
from core.model.states import Reason
from couriers.sending.interface import Rejected
from scenarios.actions import own_actions
from scenarios.engine import Ending, completed
from scenarios.execution.secrets import HIDDEN, Secrets, secret_variables
from scenarios.inspection.run_listing import RunFilter
from scenarios.inspection.runs import RunReader
from scenarios.schema import ActionType, Attributes
from tests.scenarios.execution.conftest import WITHIN, Installation
from tests.support.stack import TENANT
from tests.support.waiting import until

CHAIN = """
    - {type: send, text: first}
    - {type: send, text: never, chain: failed}
    - {type: send, text: last, chain: drop, chain_drop: completed}
    - {type: send, text: cut, chain: any}
"""


async def test_each_action_says_what_released_or_dropped_it_and_when(installation: Installation) -> None:
    installation.actions(CHAIN)
    await installation.start()
    run = await installation.play()
    assert [(action.n, action.state, action.cause, action.by) for action in run.actions] == [
        (1, "completed", "unchained", None),
        (2, "drop", "unmatched", 1),
        (3, "completed", "matched", 2),
        (4, "drop", "cut", 3),
    ]
    assert run.actions[1].why == "action 1 ended as completed; the chain is failed"
    assert run.actions[3].why == "action 3 ended as completed, which its chain_drop names"
    first, second, third, fourth = run.actions
    assert first.moved_at == run.began
    assert first.ended_at == second.moved_at == third.moved_at
    assert third.ended_at is not None
    assert fourth.moved_at == third.ended_at
    assert fourth.ended_at is None
    assert run.ended is not None
    assert datetime.fromisoformat(run.ended) >= datetime.fromisoformat(third.ended_at)


async def test_a_run_is_shown_on_the_command_line(installation: Installation) -> None:
    installation.actions(CHAIN)
    await installation.start()
    shown = msgspec.to_builtins(await installation.play())
    printed = list(lines(shown))
    assert "echo:7  over" in printed[0]
    assert "  2. drop      s.main: send (action 1 ended as completed; the chain is failed)" in printed


async def test_only_messages_that_were_ordered_are_shown_as_messages(installation: Installation) -> None:
    """A text whose condition did not hold, and one that was refused, were printed like those that were sent."""
    installation.actions("""
    - {type: send, text: left out, when: {event_text: {rule: equals, value: bye}}}
    - {type: send, text: sent, when: {event_text: {rule: equals, value: hi}}}
    - {type: send, text: not for you, required_role: chief}
    - {type: send, text: blocked}
    - {type: ask, text: "When?", timeout: 1h}
""")
    respond = installation.courier.respond
    installation.courier.respond = lambda one: Rejected(Reason.BLOCKED) if one.text == "blocked" else respond(one)
    await installation.start()
    run = await installation.put("hi")
    await until(lambda: "When?" in installation.texts)
    await until(lambda: has_waits(installation, run))
    await installation.stack.have_noted()
    await installation.pass_time(timedelta(hours=2))
    view = await installation.over(run)
    assert [action.state for action in view.actions] == ["drop", "completed", "failed", "failed", "failed"]
    assert [one.send and one.send["text"] for one in view.actions] == [None, "sent", None, "blocked", "When?"]
    printed = "\n".join(lines(msgspec.to_builtins(view)))
    assert "» sent" in printed
    assert "left out" not in printed
    assert "» not for you" not in printed


async def test_each_refused_action_is_in_the_run_and_in_the_log(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    """A refused permission without `on_failure` was nowhere but in the run."""
    refused = [f"    - {{type: {name}, required_role: chief}}\n" for name in own_actions()]
    installation.actions("".join(refused))
    await installation.start()
    view = await installation.play("hi")
    assert {action.state for action in view.actions} == {"failed"}
    printed = "\n".join(lines(msgspec.to_builtins(view)))
    assert printed.count("chief") == len(refused)
    warned = [record.getMessage() for record in caplog.records if "chief" in record.getMessage()]
    assert len(warned) == len(refused)
    assert f"s.yaml, line 3, run {view.id}: " in warned[0]


async def test_a_refusal_that_the_author_has_an_answer_for_is_not_logged(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    installation.actions("""
    - {type: send, text: x, required_role: chief, on_failure: [{type: send, text: Only the chief}]}
    - {type: send, text: x, required_role: chief}
    - {type: send, text: Only the chief, chain: failed}
    - {type: send, text: "{gap}", to: "{gap}"}
    - {type: send, text: whatever it was, chain: true}
""")
    await installation.start()
    await installation.play("hi", gap="")
    assert installation.texts.count("Only the chief") == 2
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert ["FIELD_EMPTY" in one for one in warned] == [True]


async def has_waits(installation: Installation, run: str) -> bool:
    return (await installation.read(run)).actions[-1].waits_for is not None


SECRET, LINK = "s3cret-of-the-club", "https://login.example/once/abc"
VALUES = """
    - {type: sign, placeholder: true, api_key: "${CLUB_KEY}", user_state: "{event_text}"}
    - {type: send, text: "Hello {first_name}\\nby ${CLUB_KEY}", inline: [[{Sign in: "{sign_in_url}"}]], chain: true}
    - {type: user, user_state: "asked {event_text}", placeholder: true, note: "${CLUB_KEY}"}
    - {type: send, text: "never {first_name}", chain: failed}
"""


async def test_a_run_shows_texts_and_values_of_each_step_without_secrets(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the names of the steps were shown, and the address at which a person signs in."""
    monkeypatch.setenv("CLUB_KEY", SECRET)
    installation.types["sign"] = ActionType("sign", "Signs.", other_fields=True, execute=sign)
    installation.actions(VALUES)
    await installation.start()
    run = await installation.play("hi", first_name="<Anna>")
    assert installation.texts == [f"Hello &lt;Anna&gt;\nby {SECRET}"]
    signed, sent, stated, dropped = run.actions
    assert signed.results == {"sign_in_url": HIDDEN, "access_token": HIDDEN, "tokens_used": 3}
    assert sent.send == {
        "text": "Hello &lt;Anna&gt;\nby ${CLUB_KEY}",
        "inline": [[{"text": "Sign in", "url": HIDDEN}]],
    }
    assert (stated.given["user_state"], stated.given["note"]) == ("asked hi", "${CLUB_KEY}")
    assert (dropped.given, dropped.send) == ({}, None)
    printed = list(lines(msgspec.to_builtins(run)))
    assert SECRET not in str(run) + str(printed)
    assert LINK not in str(run) + str(printed)
    assert {"       « hi", "       » Hello &lt;Anna&gt;", "       » by ${CLUB_KEY}", "       → reached: 1"} <= {
        *printed
    }
    assert "       user_state: asked hi" in printed
    assert max(map(len, printed)) <= 80


async def sign(context: Any, attributes: Attributes) -> Ending:
    return completed({"sign_in_url": LINK, "access_token": "t0ken-of-anna", "tokens_used": 3})


PROCESS, LITERAL = {"CLUB_KEY": "k3y-of-the-plugin"}, "l1teral-in-settings"
LEAKS = """
    - {type: echo, note: kept}
    - {type: leak, access_token: t0ken-in-a-field, chain: any}
"""


async def test_a_secret_is_hidden_wherever_its_value_stands(installation: Installation) -> None:
    """Only fields with the name of a secret, and variables in the bot's files, were hidden."""
    installation.types["echo"] = ActionType("echo", "Echoes.", other_fields=True, execute=echo)
    installation.types["leak"] = ActionType("leak", "Raises.", other_fields=True, execute=leak)
    installation.write("settings.yaml", f"echo: {{api_key: {LITERAL}}}")
    installation.actions(LEAKS)
    await installation.start(secrets=PROCESS)
    read_without = await installation.play()
    assert read_without.actions[1].error.startswith("RuntimeError: ${CLUB_KEY}")
    run = await RunReader(installation.stack.store, PROCESS).read(TENANT, read_without.id)
    echoed, leaked = run.actions
    assert echoed.results == {"answer": {"by": ["${CLUB_KEY}", f"key {HIDDEN}"]}, "login": {"password": HIDDEN}}
    assert leaked.error == f"RuntimeError: ${{CLUB_KEY}}, {HIDDEN} and {HIDDEN}"


async def echo(context: Any, attributes: Attributes) -> Ending:
    login = {"password": "pa55word-of-anna"}
    return completed({"answer": {"by": [PROCESS["CLUB_KEY"], f"key {LITERAL}"]}, "login": login})


async def leak(context: Any, attributes: Attributes) -> Ending:
    raise RuntimeError(f"{PROCESS['CLUB_KEY']}, t0ken-in-a-field and pa55word-of-anna")


def test_the_secrets_of_a_process_are_known_by_their_names_and_in_addresses() -> None:
    environment = {"WEATHER_KEY": "12345678", "X_TOKEN": "short", "HOME": "/home/anna", "PWD": "/home/anna/my-bot"}
    addresses = {"ADA_REDIS_URL": "rediss://u:pa55w0rd@host:1/0", "Y": "http://[a:b@c"}
    assert secret_variables({**environment, **addresses}) == {"WEATHER_KEY": "12345678", "ADA_REDIS_URL": "pa55w0rd"}


@pytest.mark.parametrize(
    "name",
    [
        *("token", "X-Api-Key", "x-auth-token", "accessToken", "Private-Token", "myApiKey", "Authorization"),
        *("Cookie", "passwd", "client_secret", "private_key", "PASSWORD"),
    ],
)
def test_secrets_have_names_of_headers_of_json_and_of_variables(name: str) -> None:
    """A header X-Api-Key with a literal was shown to all that may read the runs."""
    shown = Secrets({}, [{"headers": {name: "d0nt-show"}}])
    assert shown.hidden({"headers": {name: "d0nt-show"}, "error": "got d0nt-show"}) == {
        "headers": {name: HIDDEN},
        "error": f"got {HIDDEN}",
    }


@pytest.mark.parametrize("name", ["monkey", "max_tokens", "passport", "pass", "key", "tokenizer", "secretary"])
def test_what_is_no_name_of_a_secret_is_shown(name: str) -> None:
    assert Secrets({}, [{name: "show-this"}]).hidden({name: "show-this"}) == {name: "show-this"}


def test_secrets_in_addresses_are_hidden_as_they_stand_there_and_decoded() -> None:
    url = "https://anna:pa%2F55@a.example/x?api_key=abcd%201234&city=Moscow"
    shown = Secrets({}, [{"url": url}])
    assert shown.in_text(f"{url}: pa/55, abcd 1234") == (
        f"https://anna:{HIDDEN}@a.example/x?api_key={HIDDEN}&city=Moscow: {HIDDEN}, {HIDDEN}"
    )


async def test_a_run_of_another_tenant_does_not_exist(installation: Installation) -> None:
    installation.actions(CHAIN)
    await installation.start()
    run = await installation.play()
    reader = RunReader(installation.stack.store)
    for tenant, name in (("other", run.id), (TENANT, "0.abc"), (TENANT, "nonsense"), (TENANT, "99.abc")):
        with pytest.raises(NotFound):
            await reader.read(tenant, name)


TWO = """
good:
  actions: [{type: send, text: x}]
bad:
  actions: [{type: no_such_action}, {type: send, text: y, chain: failed}]
"""


async def test_the_runs_of_a_tenant_are_found_by_scenario_state_person_and_time(installation: Installation) -> None:
    installation.write("triggers.yaml", 'text: {exact: {bad: s.bad}, "*": s.good}').write("scenarios/s.yaml", TWO)
    await installation.start()
    good = [(await installation.play(str(n))).id for n in range(3)]
    bad = (await installation.play("bad", user_id="8", chat_id="8")).id
    since = datetime.fromisoformat((await installation.read(good[2])).began)
    reader = RunReader(installation.stack.store)

    async def found(limit: int = 2, **wanted: Any) -> list[str]:
        page, cursor = await reader.page(TENANT, RunFilter(**wanted), None, limit)
        rows = list(page)
        while cursor:
            page, cursor = await reader.page(TENANT, RunFilter(**wanted), cursor, limit)
            rows += page
        return [run.id for run in rows]

    assert await found() == [bad, *good[::-1]]
    assert await found(scenario="s.good") == good[::-1]
    assert await found(state="with_faults") == await found(person="echo:8") == await found(scenario="s.bad") == [bad]
    assert await found(state="over", person="echo:7") == good[::-1]
    assert await found(state="running") == await found(state="dropped") == await found(scenario="s.none") == []
    assert await found(since=since) == [bad, good[2]]
    assert await found(until=since) == good[::-1]
    assert (await reader.page("other", RunFilter()))[0] == []
    (summary,), _ = await reader.page(TENANT, RunFilter(state="with_faults"))
    assert (summary.faults, summary.text, summary.scenarios) == (1, "bad", ["s.bad"])


async def test_a_run_that_waits_is_driven_on_or_dropped_and_the_next_event_of_the_person_follows(
    bare: Installation,
) -> None:
    bare.actions("    - {type: send, text: first}\n    - {type: send, text: second, chain: any}")
    await bare.start(patience=0.1)  # without a courier: the messages wait
    run, following = await bare.put(), await bare.put()
    reader = RunReader(bare.stack.store)
    await until(lambda: parked(bare, run), within=WITHIN)
    assert (await reader.drive_on(TENANT, run)).state == "running"
    await until(lambda: parked(bare, run), within=WITHIN)
    assert not await bare.exists(following)
    dropped = await reader.drop(TENANT, run)
    assert (dropped.state, [action.state for action in dropped.actions]) == ("dropped", ["pending", "hold"])
    await until(lambda: parked(bare, following), within=WITHIN)
    for change in (reader.drop, reader.drive_on):
        with pytest.raises(Conflict, match="over"):
            await change(TENANT, run)
        with pytest.raises(NotFound):
            await change("other", following)
    (summary,), _ = await reader.page(TENANT, RunFilter(state="dropped"))
    assert summary.id == run


async def parked(installation: Installation, run: str) -> bool:
    """Whether a run waits for its message."""
    if not await installation.exists(run):
        return False
    view = await installation.read(run)
    return view.actions[0].waits_for is not None
