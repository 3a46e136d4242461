"""The dry run: a bot's folder and a recorded event, played by the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from scenarios.actions import own_actions
from tests.scenarios.bot_folder import BotFolder

Rows = list[dict[str, Any]]
Play = Callable[..., Rows]


class Folder(BotFolder):
    """A bot's folder. `play` runs an event through `./ada scenarios run` and returns its rows."""

    def __init__(self, path: Path, output: pytest.CaptureFixture[str]) -> None:
        super().__init__(path)
        self._output = output
        self.warnings = ""

    def play(self, *options: str, **event: Any) -> Rows:
        code = main(["scenarios", "run", str(self.folder), "--update", self.event(event), "--dry", "--json", *options])
        printed = self._output.readouterr()
        self.warnings = printed.err
        assert code == 0, printed.err
        return [json.loads(line) for line in printed.out.splitlines()]

    def event(self, event: dict[str, Any]) -> str:
        file = self.folder.parent / "event.json"
        file.write_text(
            json.dumps({"kind": "text", "user_id": 7, "chat_id": 7, "event_text": "x", "language_code": "en"} | event)
        )
        return str(file)


@pytest.fixture
def bot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Folder:
    folder = tmp_path / "bot"
    folder.mkdir()
    return Folder(folder, capsys)


def texts(rows: Rows) -> list[str]:
    return [row["send"]["text"] for row in rows if row["send"]]


def outcomes(rows: Rows) -> list[str]:
    return [row["outcome"] for row in rows]


EXAMPLE = r"""
user_validate:
  actions:
    - type: validator
      rules: {username: [{rule: not_empty}], phone: [{rule: regex, value: '^\+7\d{10}$'}]}
    - type: send
      text: "Ошибка валидации"
      chain: failed
      chain_drop: completed
    - type: send
      text: "Ок, {username|fallback:Гость}"
      chain: true
"""


@pytest.mark.parametrize(
    ("phone", "rows"),
    [
        ("+79991112233", [("validator", "completed", None), ("send", "drop", None), ("send", "completed", "Ок, ivan")]),
        ("12", [("validator", "failed", None), ("send", "completed", "Ошибка валидации"), ("send", "drop", None)]),
    ],
)
def test_the_example_of_the_dialect_gives_what_the_specification_says(
    bot: Folder, phone: str, rows: list[tuple[str, str, str | None]]
) -> None:
    bot.write("triggers.yaml", 'text: {"*": user_validate}').write("scenarios/user.yaml", EXAMPLE)
    played = bot.play(username="ivan", phone=phone)
    found = [(row["type"], row["outcome"], (row["send"] or {}).get("text")) for row in played]
    assert found == rows
    assert [row["n"] for row in played] == [1, 2, 3]
    assert {row["scenario"] for row in played} == {"user.user_validate"}
    assert set(played[0]) == {"n", "node", "scenario", "type", "outcome", "why", "error", "given", "send", "results"}


def test_each_row_says_what_released_or_dropped_the_action(bot: Folder) -> None:
    bot.write("triggers.yaml", 'text: {"*": user_validate}').write("scenarios/user.yaml", EXAMPLE)
    assert [row["why"] for row in bot.play(username="", phone="")] == [
        "it has no chain, so it runs at once; username: not_empty does not hold",
        "action 1 ended as failed; the chain is failed",
        "action 2 ended as completed, which its chain_drop names",
    ]


def test_the_dry_run_changes_no_file(bot: Folder) -> None:
    bot.actions(
        "    - {type: request, request_name: r}\n    - {type: user, user_state: s}\n    - {type: send, text: a}"
    )
    before = {path: path.read_bytes() for path in bot.folder.rglob("*") if path.is_file()}
    assert outcomes(bot.play()) == ["completed"] * 3
    assert {path: path.read_bytes() for path in bot.folder.rglob("*") if path.is_file()} == before


def test_providers_are_answered_as_if_they_succeeded_unless_a_type_shall_fail(bot: Folder) -> None:
    bot.actions("""
    - {type: invite_link, member_limit: 1}
    - {type: send, text: "{invite_link}", chain: completed}
    - {type: send, text: "leider: {error}", chain: drop}
""")
    assert outcomes(bot.play()) == ["completed", "completed", "drop"]
    failing = bot.play("--fail", "invite_link")
    assert outcomes(failing) == ["failed", "drop", "completed"]
    assert texts(failing) == ["leider: its outcome is set to failed"]


def test_attributes_become_variables_of_later_steps_and_words_of_a_person_stay_escaped(bot: Folder) -> None:
    bot.actions("""
    - {type: user, placeholder: true, user_state: s, greeting: "Hi {first_name}"}
    - {type: remove, chain: any}
    - {type: send, text: "<b>{greeting}</b>", chain: any}
""")
    assert texts(bot.play(first_name="<i>{user_id}")) == ["<b>Hi &lt;i&gt;{user_id}</b>"]


@pytest.mark.parametrize(
    ("chain", "after"),
    [
        ("completed", "c"),
        ("failed", "fu"),
        ("unknown", "u"),
        ("[completed, unknown]", "cu"),
        ("drop", ""),
        ("true", "cfu"),
        ("any", "cfu"),
    ],
)
def test_a_chain_distinguishes_unknown_from_failed_and_failed_names_both(bot: Folder, chain: str, after: str) -> None:
    bot.actions(f"""
    - {{type: send, text: first}}
    - {{type: user, user_state: x, chain: {chain}}}
""")
    options = {"c": (), "f": ("--fail", "send"), "u": ("--unknown", "send")}
    ran = [letter for letter, more in options.items() if outcomes(bot.play(*more))[1] == "completed"]
    assert "".join(ran) == after


@pytest.mark.parametrize(
    ("chain_drop", "cuts"), [("failed", "fu"), ("unknown", "u"), ("completed", "c"), ("any", "cfu")]
)
def test_a_chain_drop_distinguishes_unknown_from_failed(bot: Folder, chain_drop: str, cuts: str) -> None:
    bot.actions(f"""
    - {{type: send, text: first, chain_drop: {chain_drop}}}
    - {{type: user, user_state: x, chain: any}}
""")
    options = {"c": (), "f": ("--fail", "send"), "u": ("--unknown", "send")}
    cut = [letter for letter, more in options.items() if outcomes(bot.play(*more))[1] == "drop"]
    assert "".join(cut) == cuts


def test_an_unknown_outcome_is_explained_and_its_error_can_be_sent(bot: Folder) -> None:
    bot.actions("""
    - {type: send, text: first}
    - {type: request, request_info: "{error}", placeholder: true, chain: unknown}
""")
    first, second = bot.play("--unknown", "send")
    assert first["outcome"] == "unknown"
    assert "its outcome is set to unknown" in first["why"]
    assert second["why"] == "action 1 ended as unknown; the chain is unknown"


def test_an_authors_value_in_place_of_a_persons_is_not_escaped_and_the_other_way_round(bot: Folder) -> None:
    """The mark of the person's words stayed with the name, and the author's tags were shown as text."""
    bot.actions("""
    - {type: validator, placeholder: true, title: "{first_name}"}
    - {type: send, text: "{title}", chain: any}
    - {type: validator, title: "<b>News</b>", chain: any}
    - {type: send, text: "{title}", chain: any}
    - {type: validator, placeholder: true, title: "{first_name}", chain: any}
    - {type: send, text: "{title}", chain: any}
""")
    assert texts(bot.play(first_name="<i>")) == ["&lt;i&gt;", "<b>News</b>", "&lt;i&gt;"]


def test_a_result_replaces_the_attribute_of_the_same_name(bot: Folder) -> None:
    bot.actions("""
    - {type: validator, text: found}
    - {type: send, text: own, additional_text: "!", chain: completed}
    - {type: send, text: own}
""")
    assert texts(bot.play()) == ["found!", "own"]


def test_all_actions_replace_placeholders_unless_they_say_otherwise(bot: Folder) -> None:
    bot.actions("""
    - {type: send, text: "{user_id}"}
    - {type: send, text: "{user_id}", placeholder: false}
    - {type: validator, placeholder: false, rules: {user_id: [{rule: equals, value: "{chat_id}"}]}}
    - {type: validator, rules: {user_id: [{rule: equals, value: "{chat_id}"}]}}
    - {type: validator, placeholder: true, rules: {user_id: [{rule: equals, value: "{chat_id}"}]}}
""")
    rows = bot.play()
    assert texts(rows) == ["7", "{user_id}"]
    assert outcomes(rows[2:]) == ["failed", "completed", "completed"]


SPLICES = """
main:
  actions:
    - {type: send, text: before}
    - {type: scenario, value: part, chain: completed}
    - {type: send, text: after, chain: completed}
part:
  actions:
    - {type: send, text: "part of {user_id}"}
"""


def test_a_scenario_is_spliced_in_by_its_short_name_in_the_same_file(bot: Folder) -> None:
    bot.write("triggers.yaml", 'text: {"*": folder.file.main}').write("scenarios/folder/file.yaml", SPLICES)
    bot.write("scenarios/other.yaml", "part: {actions: [{type: send, text: another}]}")
    rows = bot.play()
    assert texts(rows) == ["before", "part of 7", "after"]
    assert [row["scenario"] for row in rows] == ["folder.file.main"] * 2 + ["folder.file.part", "folder.file.main"]


def test_an_unknown_scenario_is_reported_and_the_other_actions_run(bot: Folder) -> None:
    bot.actions("    - {type: scenario, value: nowhere}\n    - {type: send, text: a}")
    rows = bot.play()
    assert outcomes(rows) == ["failed", "completed"]
    assert "there is no scenario 'nowhere'" in rows[0]["why"]
    assert "there is no scenario 'nowhere'" in bot.warnings


def test_a_list_of_scenarios_gives_branches_from_the_same_action(bot: Folder) -> None:
    bot.write("triggers.yaml", 'text: {"*": s.main}')
    bot.write(
        "scenarios/s.yaml",
        """
main:
  actions:
    - {type: validator, rules: {user_id: [{rule: equals, value: 8}]}}
    - {type: scenario, value: [good, bad]}
    - {type: send, text: next, chain: failed}
good: {actions: [{type: send, text: good, chain: completed}]}
bad: {actions: [{type: send, text: bad, chain: failed}]}
""",
    )
    assert texts(bot.play()) == ["bad", "next"]
    assert texts(bot.play(user_id=8)) == ["good"]


def test_a_scenario_that_splices_itself_ends_with_a_complaint_that_names_the_loop(bot: Folder) -> None:
    bot.actions("    - {type: scenario, value: main}\n    - {type: send, text: end, chain: any}")
    rows = bot.play()
    assert len(rows) < 100
    assert "s.main → s.main" in bot.warnings
    assert texts(rows)


def test_buttons_lead_to_a_scenario_or_an_address_or_send_their_normalised_text(bot: Folder) -> None:
    bot.actions("    - {type: send, text: m, inline: [[Да!, {Сайт: 'https://a.example'}], {Назад: s.main}]}")
    inline = bot.play()[0]["send"]["inline"]
    assert inline == [
        [{"text": "Да!", "data": "da"}, {"text": "Сайт", "url": "https://a.example"}],
        [{"text": "Назад", "data": ":s.main"}],
    ]
    assert texts(bot.play(kind="callback", callback_data=inline[1][0]["data"])) == ["m"]


def test_an_event_without_a_trigger_gives_no_rows_and_a_warning(bot: Folder) -> None:
    bot.write("triggers.yaml", "text: {exact: {x: s.main}}")
    assert bot.play(event_text="other") == []
    assert "no trigger matches this event (text): 'other'" in bot.warnings


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ("required_role: [admin, teacher]", "completed"),
        ("required_role: admin", "failed"),
        ("required_permission: [read, write]", "completed"),
        ("required_permission: [read, delete]", "failed"),
        ("required_role: teacher, required_permission: delete", "failed"),
        ("required_role: admin, required_permission: read", "completed"),
    ],
)
def test_roles_and_permissions_decide_who_may_run_an_action(bot: Folder, needs: str, expected: str) -> None:
    bot.write("bot.yaml", "roles: {teacher: {permissions: [read, write], users: [7]}, admin: {users: [1]}}")
    bot.actions(f"    - {{type: send, text: a, {needs}}}\n    - {{type: send, text: refused, chain: failed}}")
    assert outcomes(bot.play()) == [expected, "drop" if expected == "completed" else "completed"]


def test_a_send_without_text_and_attachment_fails_with_an_error(bot: Folder) -> None:
    bot.actions("    - {type: send, text: '{nothing|fallback:}'}\n    - {type: send, text: '{error}', chain: failed}")
    assert texts(bot.play()) == ["there is nothing to send: no text and no attachment"]


def test_a_dry_run_echoes_the_arguments_and_shows_them(bot: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    """`restrict` showed [restrict_username] and 60, and a list of requests was no text of the next message."""
    bot.actions("""
    - {type: restrict, restrict_username: "@ivan", duration: 1h 30m}
    - {type: send, text: "{restrict_username}: {duration_seconds}", chain: completed}
    - {type: request_management, request_name: club}
    - {type: send, chain: completed}
    - {type: user, user_state: "", placeholder: true, greeting: "Hi {first_name}"}
""")
    rows = bot.play(first_name="Anna")
    assert rows[0]["results"] == {"restrict_user_id": 1, "restrict_username": "@ivan", "duration_seconds": 5400}
    assert texts(rows)[0] == "@ivan: 5400"
    assert "· club ·" in texts(rows)[1]
    assert main(["scenarios", "run", str(bot.folder), "--update", bot.event({"first_name": "Anna"}), "--dry"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert "       → restrict_username: @ivan" in printed
    assert "       greeting: Hi Anna" in printed
    assert max(map(len, printed)) <= 80


def test_history_copy_and_inline_results_are_those_of_a_server(bot: Folder) -> None:
    bot.actions("""
    - {type: history}
    - {type: send, text: "{messages.0.by}, {messages_processed}", chain: completed}
    - {type: copy, chat_to: 5}
    - {type: answer_inline, results: [one, {title: two}]}
    - {type: answer_inline, inline_query_id: "9", results: [one, {title: two}]}
""")
    rows = bot.play(first_name="Anna")
    assert outcomes(rows) == ["completed"] * 3 + ["failed", "completed"]
    assert texts(rows) == ["Anna, 1", "<code>Anna</code>\nx"]
    assert [rows[2]["results"]["verdict"], rows[4]["results"]] == ["all_reached", {"results_offered": 2}]
    returned = {name for row in rows for name in row["results"]} - {"error"}
    assert returned <= {name for kind in own_actions().values() for name in kind.returns}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("text: '<b>x'", "MARKS_BROKEN"),
        ("text: x, inline: [[{'': s.main}]]", "BUTTON_MALFORMED"),
        ("text: x, to: [1, {nobody: 1}]", "RECIPIENT_MALFORMED"),
    ],
)
def test_a_message_that_a_delivery_refuses_fails_in_a_dry_run_too(bot: Folder, fields: str, code: str) -> None:
    bot.actions(f"    - {{type: send, {fields}}}")
    (row,) = bot.play()
    assert (row["outcome"], row["send"]) == ("failed", None)
    assert f"{code}: " in row["why"]


def test_a_message_of_later_is_scheduled_in_a_dry_run(bot: Folder) -> None:
    bot.actions("    - {type: send, text: x, delay: 1d}\n    - {type: send, text: '{verdict}', chain: completed}")
    assert texts(bot.play()) == ["x", "scheduled"]


def test_settings_change_defaults_and_switch_actions_off(bot: Folder) -> None:
    bot.write("settings.yaml", "send: {placeholder: false}\nremove: {enabled: false}")
    bot.actions("    - {type: send, text: '{user_id}'}\n    - {type: remove}")
    rows = bot.play()
    assert (texts(rows), outcomes(rows)) == (["{user_id}"], ["completed", "failed"])


@pytest.mark.parametrize(("content", "words"), [("[1]", "must hold one event"), ("{", "is not JSON")])
def test_a_file_that_is_no_event_is_wrong_usage(
    bot: Folder, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, words: str
) -> None:
    (tmp_path / "bad.json").write_text(content)
    assert main(["scenarios", "run", str(bot.folder), "--update", str(tmp_path / "bad.json"), "--dry"]) == 2
    assert words in capsys.readouterr().err


def test_without_json_the_actions_and_their_messages_are_readable(
    bot: Folder, capsys: pytest.CaptureFixture[str]
) -> None:
    bot.actions("    - {type: send, text: Hallo}")
    assert main(["scenarios", "run", str(bot.folder), "--update", bot.event({}), "--dry"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "  1. completed s.main: send (it has no chain, so it runs at once)",
        "       » Hallo",
        "       → delivery_id: [delivery_id]",
        "       → people: 1",
        "       → verdict: all_reached",
        "       → reached: 1",
        "       → last_message_id: 1",
    ]


def test_graph_shows_what_follows_what_and_what_is_spliced_in(bot: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    bot.write("scenarios/f.yaml", SPLICES)
    assert main(["scenarios", "graph", str(bot.folder), "main"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "f.main",
        "  1. send",
        "  2. scenario: after 1 ended as completed; splices in f.part",
        "  3. send: after f.part:1 ended as completed",
        "",
        "f.part",
        "  1. send",
    ]
    assert main(["scenarios", "graph", str(bot.folder), "main", "--dot"]) == 0
    assert '"f.main:2" -> "f.part:1" [label="splices in"];' in capsys.readouterr().out


def test_graph_of_an_unknown_scenario_names_those_that_exist(bot: Folder, capsys: pytest.CaptureFixture[str]) -> None:
    bot.write("scenarios/f.yaml", SPLICES)
    assert main(["scenarios", "graph", str(bot.folder), "nowhere"]) == 1
    assert "there are: f.main, f.part" in capsys.readouterr().err


def test_all_fields_of_all_actions_have_their_placeholders_replaced(bot: Folder) -> None:
    """A `branch` compared 20 with the text `{run.limit}`, and sent every sum to the boss."""
    bot.write("variables.yaml", "person: {amount: number}\nrun: {limit: number}\n")
    bot.actions("""
    - {type: set, variables: {person.amount: 20, run.limit: 500}}
    - {type: branch, chain: completed, otherwise: many,
       cases: [{when: {person.amount: {rule: at_most, value: "{run.limit}"}}, scenario: few}]}
    - {type: request, event_text: "said: {event_text}", request_info: "{user_id} {nobody}"}
    - {type: send, text: "{request_text}", chain: completed}
    - {type: create_promo, promo_code: "{user_id}CODE", promo_name: "{event_text}"}
    - {type: send, text: "{promo_code} {promo_name}", chain: completed}
few: {actions: [{type: send, text: few}]}
many: {actions: [{type: send, text: many}]}
""")
    rows = bot.play(event_text="<b> {user_id}")
    assert texts(rows) == ["few", "said: &lt;b&gt; {user_id}", "7CODE &lt;b&gt; {user_id}"]
    (request,) = (row["given"] for row in rows if row["type"] == "request")
    assert request["request_info"] == "7 {nobody}"


def test_a_text_in_which_nothing_is_replaced_keeps_its_backslashes(bot: Folder) -> None:
    """Patterns and prompts of the dialect run unchanged (C-57)."""
    rules = "rules: {event_text: [{rule: regex, value: '^\\{\\d{2}$'}]}"
    bot.actions(f"""
    - {{type: validator, {rules}}}
    - {{type: completion, user_message: 'as \\{{a: {{b}}'}}
    """)
    rows = bot.play(event_text="{12")
    assert outcomes(rows) == ["completed", "completed"]
    assert rows[1]["given"]["user_message"] == "as \\{a: {b}"


def test_a_bare_name_of_a_button_leads_into_its_own_file(bot: Folder) -> None:
    """Another file with a scenario of that name made the buttons dead."""
    for name in "ab":
        button = "inline: [[{Again: start}, {Site: 'https://a.example'}, '{user_id}', {Other: only}]]"
        bot.write(f"scenarios/{name}.yaml", f"start: {{actions: [{{type: send, text: {name}, {button}}}]}}\n")
    bot.write("scenarios/c.yaml", "only: {actions: []}\n").write("triggers.yaml", 'text: {"*": b.start}')
    (row,) = bot.play()
    (buttons,) = row["send"]["inline"]
    assert [one.get("data") or one.get("url") or one["text"] for one in buttons] == [
        ":b.start", "https://a.example", "7", ":c.only"]  # fmt: skip
    assert texts(bot.play(kind="callback", callback_data=":b.start")) == ["b"]


@pytest.mark.parametrize("data", ["ru", ":gone.start", "page:0123456789abcdef:1"])
def test_a_trigger_of_callback_catches_old_buttons(bot: Folder, data: str) -> None:
    bot.actions("    - {type: answer_press, text: This button is old}\n")
    bot.write("triggers.yaml", 'callback: {"*": s.main}')
    assert [row["type"] for row in bot.play(kind="callback", callback_data=data)] == ["answer_press"]
