"""Which scenarios an event starts."""

from pathlib import Path
from typing import Any

import pytest

from scenarios.bot import Bot, Place, Scenario
from scenarios.bot.button_data import normalise
from scenarios.engine.triggers import CompiledTriggers, Selection
from scenarios.loader import load
from scenarios.sending.message import inline_rows

SCENARIOS = "\n".join(
    f"{name}: {{actions: [{{type: send, text: x}}]}}" for name in ("a", "b", "c", "d", "e", "f", "star", "feedback")
)


@pytest.fixture
def select(tmp_path: Path) -> Any:
    """A function: contents of trigger files, event, state → the bare names of the selected scenarios."""

    def choose(triggers: str, event: dict[str, Any] | str, state: str = "", group: str = "") -> list[str]:
        selection = select_from(tmp_path, triggers, event, state, group)
        return [name.removeprefix("s.") for name in selection.scenarios]

    return choose


def select_from(
    folder: Path, triggers: str, event: dict[str, Any] | str, state: str = "", group: str = ""
) -> Selection:
    return compiled(folder, triggers, group).select({"event_text": event} if isinstance(event, str) else event, state)


def compiled(folder: Path, triggers: str, group: str = "") -> CompiledTriggers:
    (folder / "scenarios").mkdir(exist_ok=True)
    (folder / "scenarios" / "s.yaml").write_text(SCENARIOS)
    (folder / "triggers.yaml").write_text(triggers)
    (folder / "group_triggers.yaml").write_text(group)
    return CompiledTriggers(load(folder).bot)


def callback(data: str) -> dict[str, Any]:
    return {"kind": "callback", "callback_data": data}


@pytest.mark.parametrize(("text", "found"), [("Привет", ["a"]), (" ПРИВЕТ ", ["a"]), ("привет всем", []), ("", [])])
def test_exact_compares_the_whole_text_without_case(select: Any, text: str, found: list[str]) -> None:
    assert select("text: {exact: {привет: a}}", text) == found


@pytest.mark.parametrize(("text", "found"), [("/HELP me", ["a"]), ("see /help", []), ("/hel", [])])
def test_starts_with_compares_the_beginning(select: Any, text: str, found: list[str]) -> None:
    assert select("text: {starts_with: {/help: a}}", text) == found


@pytest.mark.parametrize(("text", "found"), [("дай справку мне", ["a"]), ("СПРАВКА", ["a"]), ("спр", [])])
def test_contains_compares_any_part(select: Any, text: str, found: list[str]) -> None:
    assert select("text: {contains: {справк: a}}", text) == found


@pytest.mark.parametrize(("text", "found"), [("Код 1234", ["a"]), ("код 12345", []), ("x7", ["b"])])
def test_a_broken_pattern_is_skipped_and_the_others_work(select: Any, text: str, found: list[str]) -> None:
    assert select("text: {regex: {'(код': c, '^код\\s+(\\d{4})$': a, 'x\\d': b}}", text) == found


def test_a_broken_pattern_is_reported_with_its_place(tmp_path: Path) -> None:
    compiled(tmp_path, "text:\n  regex: {'(код': a}")
    reports = [(problem.line, problem.code) for problem in load(tmp_path).problems if problem.is_error]
    assert reports == [(2, "BAD_PATTERN")]


def test_a_pattern_that_backtracks_ends_at_its_time_limit_with_a_warning(tmp_path: Path) -> None:
    selection = select_from(tmp_path, "text: {regex: {'(a|aa|a?)+$': a, 'b$': b}}", "a" * 60 + "!b")
    assert selection.scenarios == ("s.b",)


@pytest.mark.parametrize(("state", "found"), [("feedback", ["feedback"]), ("other", ["star"]), ("", ["star"])])
def test_any_text_of_a_person_in_a_state_goes_to_its_scenario(select: Any, state: str, found: list[str]) -> None:
    assert select('text: {state: {feedback: feedback}, "*": star}', "что угодно", state) == found


ALL_KINDS = """
text:
  "*": star
  contains: {hello: e}
  starts_with: {hello: d}
  regex: {"^hello": c}
  state: {feedback: b}
  exact: {hello: a}
"""


@pytest.mark.parametrize(
    ("text", "state", "found"),
    [
        ("hello", "feedback", "a"),
        ("hello you", "feedback", "b"),
        ("hello you", "", "c"),
        ("oh hello", "", "e"),
        ("oh", "", "star"),
    ],
)
def test_kinds_are_tried_in_their_order_and_not_in_that_of_the_file(
    select: Any, text: str, state: str, found: str
) -> None:
    assert select(ALL_KINDS, text, state) == [found]


def test_starts_with_comes_before_contains_and_within_a_kind_the_file_decides(select: Any) -> None:
    assert select("text: {contains: {hello: e}, starts_with: {hello: d, hell: a}}", "hello you") == ["d"]
    assert select("text: {contains: {hell: e, hello: d}}", "hello") == ["e"]


@pytest.mark.parametrize(
    ("label", "normal"),
    [
        ("🏠 Главное меню", "glavnoe_menyu"),
        ("Ещё  ЖЮРИ!", "eshche_zhyuri"),
        ("glavnoe_menyu", "glavnoe_menyu"),
        ("Café – №5", "cafe_no5"),
        ("🔥", ""),
        ("x" * 80, "x" * 60),
    ],
)
def test_a_button_text_is_normalised(label: str, normal: str) -> None:
    assert normalise(label) == normal
    assert normalise(normal) == normal


def test_callbacks_compare_normalised_button_texts(select: Any) -> None:
    file = "callback: {exact: {'🏠 Главное меню': a}, contains: {Меню: b, 🔥: c}}"
    assert select(file, callback("glavnoe_menyu")) == ["a"]
    assert select(file, callback("Главное меню")) == ["a"]
    assert select(file, callback("menyu_2")) == ["b"]
    assert select(file, callback("other")) == []
    assert select("text: {exact: {x: a}}", callback("x")) == []


def test_a_button_that_names_a_scenario_needs_no_trigger(tmp_path: Path) -> None:
    assert select_from(tmp_path, "", callback(":main_menu")).scenarios == ("main_menu",)


@pytest.mark.parametrize(("chat_type", "found"), [("private", "a"), (None, "a"), ("group", "b"), ("supergroup", "b")])
def test_private_chats_and_groups_have_files_of_their_own(select: Any, chat_type: str | None, found: str) -> None:
    event = {"event_text": "x", "chat_type": chat_type, "chat_id": -5}
    assert select("text: {exact: {x: a}}", event, group="text: {exact: {x: b}}") == [found]


def test_from_chat_lets_the_other_file_serve_a_chat_and_kinds_keep_their_order(select: Any) -> None:
    private = "text: {exact: {x: {scenario: a, from_chat: all}}, contains: {x: {scenario: b, from_chat: group}}}"
    group = "text: {contains: {x: c}}"
    assert select(private, {"event_text": "x", "chat_type": "group"}, group=group) == ["a"]
    assert select(private, {"event_text": "xx", "chat_type": "group"}, group=group) == ["c"]
    assert select(private, {"event_text": "xx"}, group=group) == []


MEMBERS = """
new_member:
  default: star
  initiator: {"@boss": d}
  creator: {maker: c}
  link: {"+abc": b}
  group: {"ИВТ-21": a}
"""
JOINED = {"chat_type": "group", "joined_user_id": 7}
INVITED = {**JOINED, "invite_link": "https://t.me/+ABCdef", "creator_username": "Maker", "initiator_username": "BOSS"}


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ({**INVITED, "chat_title": "ивт-21"}, "a"),
        (INVITED, "b"),
        ({**INVITED, "invite_link": ""}, "c"),
        ({**JOINED, "initiator_username": "@boss"}, "d"),
        (JOINED, "star"),
    ],
)
def test_new_members_are_matched_by_group_link_creator_initiator_and_default(
    select: Any, event: dict[str, Any], found: str
) -> None:
    assert select("", event, group=MEMBERS) == [found]


def test_new_members_are_welcomed_by_triggers_of_both_files(select: Any) -> None:
    event = {**JOINED, "chat_title": "ИВТ-21"}
    assert select("new_member: {default: a}", event) == ["a"]
    assert select("new_member: {default: a}", event, group="new_member: {default: b}") == ["b"]
    assert select("new_member: {group: {ивт-21: a}}", event, group="new_member: {default: b}") == ["a"]
    limited = "new_member: {default: {scenario: a, from_chat: -100}}"
    assert (select(limited, event), select(limited, {**event, "chat_id": -100})) == ([], ["a"])


ALL_SECTIONS = """
edited: {exact: {x: a}, "*": b}
changed_member: {status: {Administrator: a}, group: {ИВТ-21: b}, default: c}
left_member: {group: {ИВТ-21: c}, initiator: {"@boss": d}, default: e}
join_request: {link: {"+abc": c}, creator: {maker: d}, default: e}
inline_query: {starts_with: {книга: a}, "*": b}
answer: {exact: {Приду: a}, "*": b}
reply: {contains: {болею: a}, "*": b}
"""
IN_GROUP = {"chat_type": "supergroup", "chat_id": -100}


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ({"kind": "edited", "event_text": "X"}, "a"),
        ({"kind": "edited", "event_text": "y"}, "b"),
        ({"kind": "left_member", **IN_GROUP, "chat_title": "ивт-21"}, "c"),
        ({"kind": "left_member", **IN_GROUP, "initiator_username": "Boss"}, "d"),
        ({"kind": "left_member", **IN_GROUP}, "e"),
        ({"kind": "changed_member", **IN_GROUP, "member_status": "administrator", "chat_title": "ивт-21"}, "a"),
        ({"kind": "changed_member", **IN_GROUP, "member_status": "member", "chat_title": "ивт-21"}, "b"),
        ({"kind": "changed_member", **IN_GROUP, "member_status": "restricted"}, "c"),
        ({"kind": "join_request", **IN_GROUP, "invite_link": "https://t.me/+ABC"}, "c"),
        ({"kind": "join_request", **IN_GROUP, "invite_link_creator_username": "maker"}, "d"),
        ({"kind": "join_request", **IN_GROUP}, "e"),
        ({"kind": "inline_query", "event_text": "Книга о рыбах"}, "a"),
        ({"kind": "inline_query", "event_text": ""}, "b"),
        ({"kind": "answer", "event_text": "приду"}, "a"),
        ({"kind": "answer", "event_text": "40"}, "b"),
        ({"kind": "reply", "event_text": "Я болею"}, "a"),
        ({"kind": "reply", "event_text": ""}, "b"),
    ],
)
def test_edits_departures_requests_and_inline_queries_have_triggers_of_their_own(
    select: Any, event: dict[str, Any], found: str
) -> None:
    assert select(ALL_SECTIONS, event) == [found]
    assert select('text: {"*": f}', event) == []


def test_a_pressed_button_may_be_an_answer_in_a_state(select: Any) -> None:
    file = "callback: {exact: {Меню: a}, state: {Возраст: b}, contains: {у: c}}\ntext: {state: {возраст: d}}"
    assert select(file, callback("men_u"), state="возраст") == ["b"]
    assert select(file, callback("Меню"), state="возраст") == ["a"]
    assert select(file, callback("у"), state="") == ["c"]


def test_an_event_without_a_match_is_a_warning_and_starts_nothing(tmp_path: Path) -> None:
    selection = select_from(tmp_path, "text: {exact: {x: a}}", "nonsense")
    assert (selection.scenarios, [str(one) for one in selection.warnings]) == (
        (),
        ["no trigger matches this event (text): 'nonsense'"],
    )


def test_what_few_bots_look_at_is_a_warning_only_for_a_bot_with_triggers_for_it(tmp_path: Path) -> None:
    edit = {"kind": "edited", "event_text": "nonsense"}
    for event in (edit, {"kind": "new_member", "joined_user_ids": [5], "chat_type": "group"}):
        assert select_from(tmp_path, 'text: {"*": star}', event) == Selection()
    assert select_from(tmp_path, "edited: {exact: {x: a}}", edit).warnings != ()


def test_an_event_of_an_unknown_kind_starts_nothing(tmp_path: Path) -> None:
    selection = select_from(tmp_path, 'text: {"*": star}', {"kind": "poll", "event_text": "x"})
    assert (selection.scenarios, [str(one) for one in selection.warnings]) == (
        (),
        ["no trigger matches this event (poll): 'x'"],
    )


def test_all_scenarios_of_an_entry_run_and_continue_goes_on_to_lower_kinds(select: Any) -> None:
    file = """
    text:
      exact: {x: [a, {scenario: b, continue: true}]}
      starts_with: {x: c}
      contains: {x: d}
      "*": star
    """
    assert select(file, "x") == ["a", "b", "c"]


def test_continue_does_not_try_other_entries_of_the_same_kind_and_no_scenario_runs_twice(select: Any) -> None:
    file = 'text: {contains: {x: [{scenario: a, continue: true}], xy: b}, "*": [a, star]}'
    assert select(file, "xy") == ["a", "star"]


@pytest.mark.parametrize(("chat", "found"), [(-100, ["a"]), (-200, ["b"]), (-300, ["star"])])
def test_from_chat_limits_a_scenario_to_chats(select: Any, chat: int, found: list[str]) -> None:
    file = 'text: {exact: {x: [{scenario: a, from_chat: -100}, {scenario: b, from_chat: [-200]}]}, "*": star}'
    assert select("", {"event_text": "x", "chat_type": "group", "chat_id": chat}, group=file) == found


def test_empty_mappings_and_lists_are_legal_everywhere(select: Any) -> None:
    assert select('text: {exact: {}, "*": []}\ncallback: {}\nnew_member: {default: {}}', "x") == []


def test_forwards_and_bots_are_ignored_unless_an_entry_enables_them(select: Any) -> None:
    triggers = "text: {exact: {x: [{scenario: a, forward_enabled: true}], y: [{scenario: b, bot_enabled: true}]}}"
    forward, bot = {"is_forward": True}, {"is_bot": True}
    assert select(triggers, {"event_text": "x", **forward}) == ["a"]
    assert select(triggers, {"event_text": "y", **forward}) == []
    assert select(triggers, {"event_text": "y", **bot}) == ["b"]
    assert select(triggers, {"event_text": "x", **bot}) == []
    assert select("text: {exact: {x: a}}", {"event_text": "x", **forward}) == []
    assert select(triggers, {"event_text": "y"}) == ["b"]


def test_a_command_may_name_the_bot(select: Any) -> None:
    triggers = "text: {exact: {/help: a}, starts_with: {/ban: b}}"
    assert select(triggers, "/help@school_bot") == ["a"]
    assert select(triggers, "/ban@school_bot @anna") == ["b"]


@pytest.mark.parametrize("name", ["menu", "m" * 63, "m" * 64, "меню." * 20])
def test_a_button_reaches_a_scenario_of_any_name_in_64_bytes(name: str) -> None:
    ((button,),) = inline_rows([[{"Назад": name}]])
    place = Place("scenarios/s.yaml")
    bot = Bot({name: Scenario(name, name, (), place)}, {name: (name,)})
    assert len(button["data"].encode()) <= 64
    assert CompiledTriggers(bot).select(callback(button["data"])) == Selection((name,), ("",), is_specific=True)
