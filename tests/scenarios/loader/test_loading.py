"""A bot's folder becomes a bot: scenarios, names, triggers, commands, roles, settings, variables."""

from pathlib import Path

import pytest

from core.errors import SetupError
from scenarios.bot import ANY, BotCommand, Role, Target
from tests.scenarios.loader.folder import found, loaded

MENU = "start: {actions: [{type: send, text: hello}]}\n"
"""scenarios/menu.yaml with one scenario."""

DIALECT = {
    "triggers.yaml": """
text:
  exact: {"/start": "menu.start"}
  state: {feedback: capture}
  contains: {"справка": "menu.help"}
  regex: {'^код\\s+(\\d{4})$': "code.capture"}
  starts_with: {}
  "*": []
callback:
  exact: {"Меню": start}
  state: {}
  contains: {}
""",
    "group_triggers.yaml": """
new_member:
  group: {"Group": group.welcome.hello}
  link: {"https://t.me/+abc": group.welcome.hello}
  creator: {"@name": group.welcome.hello}
  initiator: {}
  default: {}
""",
    "scenarios/menu.yaml": """
start:
  actions:
    - type: send
      text: |
        Привет!
      inline:
        - ["Справка", {"Назад": "menu.start"}]
    - {type: send, text: second, chain: true, chain_drop: [completed, failed]}
    - {type: send, text: third, chain: [failed, drop], placeholders: false}
help: {actions: []}
nothing:
""",
    "scenarios/code.yaml": "capture: {actions: [{type: user, user_state: '', expire: 1m 30s}]}",
    "scenarios/group/welcome.yaml": "hello: {actions: [{type: send, text: '{joined_usernames|tags}'}]}",
    "bot.yaml": """
commands:
  - {command: start, description: Меню, scope: all_private_chats}
  - {command: "/ban", description: Ban, scope: chat_member, chat_id: -100, user_id: 7}
roles:
  admin: {description: Администратор, permissions: [edit], users: [11, "12"]}
  guest:
""",
    "settings.yaml": "logger: {console_logging_enabled: true}\nevent_manager: {max_event_age_seconds: 10}\n",
}


def test_a_folder_in_the_dialect_loads_without_problems(tmp_path: Path) -> None:
    result = loaded(tmp_path, DIALECT)
    assert found(result) == []
    assert set(result.bot.scenarios) == {
        "code.capture",
        "group.welcome.hello",
        "menu.help",
        "menu.nothing",
        "menu.start",
    }
    first, second, third = result.bot.scenarios["menu.start"].actions
    assert (first.type, first.chain, first.chain_drop, first.placeholder) == ("send", None, frozenset(), None)
    assert first.fields["text"] == "Привет!\n"
    assert first.fields["inline"] == [["Справка", {"Назад": "menu.start"}]]
    assert second.chain == ANY
    assert second.chain_drop == {"completed", "failed", "unknown"}
    assert third.chain == frozenset({"failed", "unknown", "drop"})
    assert third.placeholder is False
    assert (first.place.file, first.place.line, first.place.column) == ("scenarios/menu.yaml", 4, 7)


def test_triggers_are_kept_by_kind_in_the_order_of_the_file(tmp_path: Path) -> None:
    files = DIALECT | {"triggers.yaml": "text: {contains: {b: start, a: start, c: help}}\n"}
    triggers = loaded(tmp_path, files).bot.triggers
    assert [trigger.key for trigger in triggers.text["contains"]] == ["b", "a", "c"]
    assert triggers.text["contains"][2].targets == (Target("menu.help"),)
    assert triggers.text["exact"] == ()


def test_an_entry_may_be_a_list_of_scenarios_with_conditions(tmp_path: Path) -> None:
    entry = "[{scenario: start, from_chat: [-100, group], continue: true}, {scenario: help, from_chat: 5}, menu.start]"
    files = DIALECT | {"triggers.yaml": f'text: {{"*": {entry}}}\n'}
    result = loaded(tmp_path, files)
    assert found(result) == []
    (trigger,) = result.bot.triggers.text["*"]
    assert trigger.targets == (
        Target("menu.start", (-100, "group"), True),
        Target("menu.help", (5,)),
        Target("menu.start"),
    )


def test_each_trigger_file_has_its_own_triggers(tmp_path: Path) -> None:
    bot = loaded(tmp_path, DIALECT).bot
    assert [trigger.key for trigger in bot.triggers.text["exact"]] == ["/start"]
    assert bot.group_triggers.text["exact"] == ()
    assert [trigger.key for trigger in bot.group_triggers.new_member["creator"]] == ["@name"]
    assert bot.triggers.new_member["creator"] == ()


def test_a_scenario_is_found_by_its_full_name_and_by_a_bare_name_that_is_unique(tmp_path: Path) -> None:
    files = {
        "scenarios/a.yaml": "one: {}\nsame: {}\n",
        "scenarios/b.yaml": "same: {}\ntwo: {}\n",
        "scenarios/in/c.yaml": "three: {}\n",
    }
    bot = loaded(tmp_path, files).bot
    names = ("a.one", "one", "in.c.three", "three", "c.three", "same", "none")
    assert [scenario and scenario.name for scenario in map(bot.find, names)] == [
        "a.one",
        "a.one",
        "in.c.three",
        "in.c.three",
        None,
        None,
        None,
    ]
    callers = (bot.scenarios["a.one"], bot.scenarios["b.two"], bot.scenarios["in.c.three"])
    found_by = [bot.find("same", caller) for caller in callers]
    assert [scenario and scenario.name for scenario in found_by] == ["a.same", "b.same", None]


def test_an_unknown_scenario_of_a_trigger_is_reported_and_the_other_triggers_work(tmp_path: Path) -> None:
    files = {"scenarios/menu.yaml": MENU, "triggers.yaml": "text:\n  exact:\n    a: strat\n    b: menu.start\n"}
    result = loaded(tmp_path, files)
    assert found(result) == [("triggers.yaml", 3, 8, "UNKNOWN_SCENARIO")]
    assert "did you mean start?" in result.problems[0].message
    assert [trigger.key for trigger in result.bot.triggers.text["exact"]] == ["b"]


def test_a_bare_name_of_several_scenarios_is_reported_with_all_of_them(tmp_path: Path) -> None:
    files = {"scenarios/a.yaml": MENU, "scenarios/b.yaml": MENU, "triggers.yaml": "text: {exact: {a: start}}\n"}
    result = loaded(tmp_path, files)
    assert found(result) == [("triggers.yaml", 1, 19, "AMBIGUOUS_SCENARIO")]
    assert "a.start, b.start" in result.problems[0].message


def test_a_pattern_that_does_not_compile_is_reported_and_the_others_work(tmp_path: Path) -> None:
    triggers = "text:\n  regex:\n    '^(a': start\n    '^b': start\n"
    result = loaded(tmp_path, {"scenarios/menu.yaml": MENU, "triggers.yaml": triggers})
    assert found(result) == [("triggers.yaml", 3, 5, "BAD_PATTERN")]
    assert [trigger.key for trigger in result.bot.triggers.text["regex"]] == ["^b"]


def test_commands_and_roles_are_read_from_bot_yaml(tmp_path: Path) -> None:
    bot = loaded(tmp_path, DIALECT).bot
    assert bot.commands == (
        BotCommand("start", "Меню", "all_private_chats"),
        BotCommand("ban", "Ban", "chat_member", -100, 7),
    )
    assert bot.roles == {"admin": Role("admin", "Администратор", ("edit",), (11, 12)), "guest": Role("guest")}


def test_commands_and_roles_of_later_versions_are_read_from_settings_yaml(tmp_path: Path) -> None:
    settings = """
tg_command_registry:
  commands: [{command: help, description: Help}]
permission_manager:
  roles: {admin: {users: ["${ADMIN_ID}"]}}
"""
    files = {"scenarios/menu.yaml": MENU, "settings.yaml": settings}
    result = loaded(tmp_path, files, {"ADMIN_ID": "42"})
    assert found(result) == []
    assert result.bot.commands == (BotCommand("help", "Help"),)
    assert result.bot.roles["admin"].users == (42,)


def test_variables_of_the_environment_are_filled_in_and_missing_ones_are_warnings(tmp_path: Path) -> None:
    files = {
        "scenarios/menu.yaml": "start: {actions: [{type: send, text: '${CITY} costs ${price} ${NONE}'}]}\n",
        "settings.yaml": "a: ['${CITY}', '${NONE}', '${ADA_API_KEY}']\n",
    }
    result = loaded(tmp_path, files, {"CITY": "Омск", "ADA_API_KEY": "secret", "price": "7"})
    assert result.bot.scenarios["menu.start"].actions[0].fields["text"] == "Омск costs ${price} ${NONE}"
    assert result.bot.settings == {"a": ["Омск", "${NONE}", "${ADA_API_KEY}"]}
    assert found(result) == [("settings.yaml", 1, column, "VARIABLE_NOT_SET") for column in (16, 27)]
    assert not result.has_errors


def test_anchors_and_merged_mappings_keep_their_meaning(tmp_path: Path) -> None:
    menu = "a: {actions: [&x {type: send, text: one, reply: []}, *x, {<<: *x, text: two}]}\n"
    result = loaded(tmp_path, {"scenarios/menu.yaml": menu})
    assert found(result) == []
    assert [action.fields["text"] for action in result.bot.scenarios["menu.a"].actions] == ["one", "one", "two"]


def test_a_key_is_text_as_it_is_written_and_a_date_stays_text(tmp_path: Path) -> None:
    menu = "start: {actions: [{type: request_management, from_date: 2025-07-26, yes: 1, 5: x}]}\n"
    (action,) = loaded(tmp_path, {"scenarios/menu.yaml": menu}).bot.scenarios["menu.start"].actions
    assert action.fields == {"from_date": "2025-07-26", "yes": 1, "5": "x"}


def test_ten_thousand_actions_load(tmp_path: Path) -> None:
    action = "    - {type: send, text: hello, chain: true}\n"
    files = {"scenarios/big.yaml": "big:\n  actions:\n" + action * 10_000}
    result = loaded(tmp_path, files)
    assert len(result.bot.scenarios["big.big"].actions) == 10_000


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="not a folder"):
        loaded(tmp_path / "none", {})
