"""The tests of a bot, and a conversation with it in the terminal (C-99)."""

import json
from io import StringIO
from pathlib import Path

import pytest

from cli.main import main
from scenarios.loader import load
from scenarios.testing.bot_tests import run_tests
from tests.scenarios.bot_folder import BotFolder

SCENARIOS = """
start:
  actions:
    - {type: ask, text: "<b>Your name?</b>", save: person.name, form: f, rules: [{rule: length_min, value: 2}],
       hint: Longer, timeout: 3h, remind: 1h}
    - {type: ask, text: "Room, {person.name}?", options: [Single, Double], form: f, field: room, chain: completed}
    - {type: send, text: "{answer}", chain: completed}
    - {type: send, text: "{error}", chain: [failed, drop], when: {error: {rule: not_empty}}}
    - {type: send, text: Tomorrow, delay: 1d, chain: true}
help: {actions: [{type: send, text: Help, inline: [[{Go: start}]]}]}
days:
  actions:
    - {type: ask, text: Which day?, options: "{run.days}", page: 2, hint: Press a button}
    - {type: send, text: "{answer}", chain: completed}
group: {actions: [{type: send, text: To all, to: {group: A}, channels: [sms]}]}
named: {actions: [{type: send, text: To those, to: {people: true, when: {person.name: {rule: equals, value: Anna}}}},
  {type: send, text: "{reached} of {people}", chain: true}]}
state: {actions: [{type: user, user_state: short}]}
in_state: {actions: [{type: send, text: In time}]}
book:
  actions:
    - {type: create_promo, promo_name: wash, promo_code: "WASH-10"}
    - {type: send, text: Booked, chain: completed}
    - {type: send, text: "{error}", chain: [failed, drop], when: {error: {rule: not_empty}}}
give_back:
  actions:
    - {type: check_promo, promo_code: "wash-10"}
    - {type: modify_promo, promo_code: "FREE-{promo_id}", chain: completed}
    - {type: send, text: "Free: {promo_code}", chain: completed}
    - {type: send, text: "{reason|fallback:}{error}", chain: [failed, drop]}
broken: {actions: [{type: modify_promo, promo_id: 77}]}
web:
  actions:
    - {type: http_request, url: "https://example.org"}
    - {type: job, operation: start, kind: hunt, chain: true}
    - {type: send, text: "{error|fallback:}", chain: true}
bookings:
  actions:
    - {type: ask, text: Slot?, form: wash, field: slot, row: "{event_text}"}
    - {type: form, form: wash, row: "{event_text}", values: {paid: no}, chain: completed}
    - {type: form, form: wash, row: /wash old, delete: true, chain: completed}
    - {type: send, text: "{error|fallback:}{count|fallback:} left", chain: true}
boss:
  actions:
    - {type: send, text: x, to: "{person.name}", on_failure: [{type: send, text: "{error}"}]}
    - {type: send, text: x, delay: "{person.name}", chain: true, on_failure: [{type: send, text: "{error}"}]}
    - {type: send, text: x, deliver_at: "{person.name}", chain: true, on_failure: [{type: send, text: "{error}"}]}
hello: {actions: [{type: send, text: "{first_name} {language}"}]}
over: {actions: [{type: ask, text: Day?, dates: {to: 2020-01-01}}, {type: send, text: "{error}", chain: failed}]}
when:
  actions:
    - {type: ask, text: Day?, dates: {from: 1d, to: 10d}, save: person.day}
    - {type: ask, text: Во сколько?, times: {from: 8:00, to: 20:00, every: 90m}, chain: completed}
    - {type: ask, text: Когда?, dates: {to: 1d}, chain: completed, step: other}
    - {type: send, text: "{person.day} {answer}", after: other}
today:
  actions:
    - {type: ask, text: Today?, times: {from: 8:00, to: 20:00, every: 4h, day: today}, timeout: 3d,
       on_failure: [{type: send, text: "{error}"}]}
    - {type: send, text: "{answer}", chain: completed}
    - {type: ask, text: Next?, dates: {from: 1d, to: 2d}, timeout: 3d, chain: completed, step: next}
    - {type: send, text: "{answer}", after: next}
desk:
  actions:
    - {type: ask, text: A photo?, answer: photo}
    - {type: ask, text: A phone?, answer: contact, chain: completed}
    - {type: send, text: "{answer}", chain: completed}
team:
  actions:
    - {type: send, to: "telegram-bot:8", text: New work, inline: [[{Take: taken}]]}
    - {type: send, to: "telegram-bot:-1001", text: "#{user_id}", chain: completed}
taken: {actions: [{type: send, text: Taken}]}
in_group: {actions: [{type: send, text: "{chat_id} {reply_message_text|fallback:-}"}]}
later: {actions: [{type: send, text: Later, delay: 1d, tag: later}, {type: send, text: Much later, delay: 2d}]}
off: {actions: [{type: cancel, tag: later}]}
twice:
  actions:
    - {type: ask, text: Sure?, options: ["Yes", "No"]}
    - {type: ask, text: Really?, options: ["Yes", "No"], chain: completed}
    - {type: send, text: "{answer}", chain: completed}
marks:
  actions:
    - {type: ask, text: Mark?, answer: number, inline: [["5", "4"], [{"Skip ✅": help}, {"Stop": start}]]}
    - {type: send, text: "Got {answer}", chain: completed}
phone:
  actions:
    - {type: ask, text: Phone?, answer: contact, hint: "Not yours", reply: [[{Share: request_contact}, Never]]}
    - {type: send, text: "{answer}", chain: completed}
"""
PASSES = r"""
all goes well:
  at: 2026-12-01 09:00
  steps:
    - user: /start
    - bot: Your name?
    - user: A
    - bot: Longer
    - wait: 90m
    - bot: {contains: name}
    - user: Anna
    - bot: {text: "Room, Anna?", buttons: [Single, Double]}
    - press: Double
    - bot: [Double]
    - variables: {person.name: Anna}
    - form: {f: {name: Anna, room: Double}}
    - wait: 1d
    - bot: Tomorrow
nobody answers, another person does something else:
  steps:
    - user: /start
    - bot: Your name?
    - user: /help
      as: 8
    - bot: Help
    - press: Go
      as: 8
    - bot: Your name?
    - wait: 3h
    - bot: [Your name?, Your name?, Your name?, Your name?, ответа вовремя не было, ответа вовремя не было]
a provider fails:
  fail: [ask]
  steps:
    - user: /start
    - bot: "исход задан: ошибка"
    - user: /all
    - bot: {text: To all, to: {group: A}, channels: [sms]}
people who fulfil a condition get a message:
  variables: {person.name: Anna}
  steps:
    - {user: /help, as: 8}
    - bot: Help
    - user: /named
    - bot: [{text: To those, to: {people: true}}, 1 of 1]
a person has several rows of a form:
  steps:
    - user: /wash old
    - bot: Slot?
    - user: "9:00"
    - bot: 0 left
    - user: /wash new
    - bot: Slot?
    - user: "10:00"
    - bot: {contains: нет строки}
    - form: {wash: [{row: /wash new, slot: "10:00", paid: no}]}
a day and a time are chosen by buttons:
  at: 2026-12-01 09:00
  steps:
    - user: /over
    - bot: {contains: все эти дни или времена уже прошли}
    - user: /when
    - bot:
        text: Day?
        buttons: [Wed 02.12, Thu 03.12, Fri 04.12, Sat 05.12, Sun 06.12, Mon 07.12, Tue 08.12, Page 2 of 2 ›]
    - press: Page 2 of 2 ›
    - bot: {buttons: [Wed 09.12, Thu 10.12, Fri 11.12, ‹ Page 1 of 2]}
    - user: 12.12.2026
    - bot: {contains: Day?}
    - press: Thu 10.12
    - bot: {buttons: ["8:00", "9:30", "11:00", "12:30", "14:00", "15:30", "17:00", "18:30", Стр. 2 из 2 ›]}
    - wait: 15h
    - press: "9:30"
    - bot: {text: Когда?, buttons: [Ср 02.12, Чт 03.12]}
    - user: 03.12.2026
    - bot: 2026-12-10 2026-12-03
times of today and days that are over are not offered, and no answer:
  at: 2026-12-05 12:00
  steps:
    - {user: /today, bot: {text: Today?, buttons: ["16:00", "20:00"]}}
    - {user: "8:00", bot: {text: Today?, buttons: ["16:00", "20:00"]}}
    - wait: 5h
    - {press: "16:00", bot: {text: Today?, buttons: ["20:00"]}}
    - {press: "20:00", bot: ["20:00", {text: Next?, buttons: [Sun 06.12, Mon 07.12]}]}
    - wait: 1d
    - {press: Sun 06.12, bot: {text: Next?, buttons: [Mon 07.12, Tue 08.12]}}
    - {press: Tue 08.12, bot: 2026-12-08}
    - wait: 3h
    - {user: /today, bot: {contains: все эти дни или времена уже прошли}}
people send photos and contacts, reply in a group, write in another channel and press an old button:
  steps:
    - {user: /desk, bot: A photo?}
    - {user: /help, as: 8, channel: sms, bot: {text: "Help\n1. Go", chat: "sms:8", buttons: []}}
    - {photo: F1, bot: A phone?}
    - {contact: "+79990000001", bot: "+79990000001"}
    - {user: hi, in: -100, bot: {text: -100 -, chat: "telegram-bot:-100"}}
    - {reply: yes, as: 9, in: -100, bot: -100 -100 -}
    - {press: Go, as: 8, channel: sms, bot: Your name?}
the pages of a long list are turned:
  steps:
    - user: /days
    - bot: {text: Which day?, buttons: [Mon, Tue, Page 2 of 3 ›]}
    - press: Page 2 of 3 ›
    - bot: {text: Which day?, buttons: [Wed, Thu, ‹ Page 1 of 3, Page 3 of 3 ›]}
    - press: Page 3 of 3 ›
    - bot: {buttons: [Fri, ‹ Page 2 of 3]}
    - user: Sunday
    - bot: {text: Press a button, buttons: [Mon, Tue, Page 2 of 3 ›]}
    - press: Fri
    - bot: Fri
    - press: Page 2 of 3 ›
    - bot: []
one place is given once:
  steps:
    - user: /book
    - bot: Booked
    - {user: /book, as: 8}
    - bot: код WASH-10 принадлежит другой акции
    - {user: /back, as: 8}
    - bot: {contains: другому человеку}
    - user: /back
    - bot: "Free: FREE-1"
    - {user: /book, as: 8}
    - bot: Booked
a state lasts as settings.yaml says:
  steps:
    - user: /state
    - wait: 59s
    - user: x
    - bot: In time
    - wait: 1s
    - user: x
what is cancelled does not come, the rest when it is due:
  steps:
    - user: /later
    - user: /off
    - wait: 47h
    - wait: 1h
    - bot: Much later
what is for nobody goes to nobody, and what has no time is not sent now:
  steps:
    - user: /boss
    - bot:
        - contains: "Поле `to` пусто"
        - contains: "Поле `delay` пусто"
        - contains: "Поле `deliver_at` пусто"
what was sent with `to` is in the chat of whoever got it:
  steps:
    - user: /team
    - bot: [{text: New work, to: "telegram-bot:8", buttons: [Take]}, {text: "#7", to: "telegram-bot:-1001"}]
    - {press: Take, as: 8, bot: {text: Taken, chat: "telegram-bot:8"}}
    - {reply: done, as: 50, in: -1001, bot: "-1001 #7"}
a person keeps its name and language:
  steps:
    - {user: {event_text: /hello, first_name: Boris, language: en}, bot: Boris en}
    - {user: /hello, bot: Boris en}
    - {user: /hello, as: 8, bot: Anna ru}
a button that is pressed twice ends no question:
  at: 2026-12-01 09:00
  steps:
    - {user: /when, bot: {text: Day?}}
    - {press: Wed 02.12, bot: {text: Во сколько?}}
    - press: Wed 02.12
    - {press: "8:00", bot: {text: Когда?}}
    - {user: /marks, bot: Mark?}
    - {press: "8:00"}
    - {press: Stop, bot: Your name?}
    - {press: "4"}
    - {user: Anna, bot: "Room, Anna?"}
    - {user: /twice, bot: Sure?}
    - {user: {callback_data: "yes", message_id: 77}, bot: Really?}
    - user: {callback_data: "yes", message_id: 77}
    - {user: {callback_data: "no", message_id: 78}, bot: "No"}
the words of a button press it:
  steps:
    - {user: /marks, bot: {text: Mark?, buttons: ["5", "4", "Skip ✅", Stop]}}
    - {press: "4", bot: Got 4}
    - {user: /marks, as: 8, channel: sms, bot: {contains: "2. 4\n3. Skip"}}
    - {user: "2", as: 8, channel: sms, bot: Got 4}
    - {user: /marks, bot: Mark?}
    - {user: "skip!", bot: Help}
    - {user: Go, bot: Your name?}
    - {user: Skip, bot: "Room, Skip?"}                # an answer: its button is of an older message
    - {user: /marks, bot: Mark?}
    - {press: "5", bot: Got 5}
    - {user: stop, bot: Help}                         # a trigger takes what it names
a contact is shared:
  steps:
    - user: /phone
    - bot: Phone?
    - user: {attachments: [{type: contact, phone: "+79990000009", is_own: false}]}
    - bot: Not yours
    - press: Share
    - bot: "+79990000007"
"""
SETTINGS = "user_manager: {state_expire: 60}"
VARIABLES = "{person: {name: text, day: date}, run: {days: {type: list, default: [Mon, Tue, Wed, Thu, Fri]}}}"


@pytest.fixture
def folder(tmp_path: Path) -> BotFolder:
    bot = BotFolder(tmp_path).write("scenarios/s.yaml", SCENARIOS).write("variables.yaml", VARIABLES)
    bot.write("settings.yaml", SETTINGS)
    return bot.write(
        "triggers.yaml",
        "text: {exact: {/start: s.start, /help: s.help, /desk: s.desk, /all: s.group, /days: s.days, /phone: s.phone,"
        " /state: s.state, /named: s.named, /book: s.book, /back: s.give_back, /broken: s.broken, /later: s.later,"
        " /off: s.off, /web: s.web,"
        " /boss: s.boss, /team: s.team, /marks: s.marks, /twice: s.twice, stop: s.help, /hello: s.hello},"
        " state: {short: s.in_state}, starts_with: {/wash: s.bookings, /when: s.when, /over: s.over, /today: s.today}}",
    ).write("group_triggers.yaml", 'text: {"*": s.in_group}')


async def test_a_test_plays_people_buttons_time_and_failing_providers(folder: BotFolder) -> None:
    verdicts, problems = await run_tests(folder.write("tests/a.yaml", PASSES).folder, load(folder.folder).bot)
    assert [(one.name, one.problem) for one in verdicts if one.problem] == []
    assert (len(verdicts), problems) == (18, [])


@pytest.mark.parametrize(
    ("steps", "problem", "line"),
    [
        ("[{user: /help}, {bot: Hlp}]", "the bot says 'Help', expected 'Hlp'", 2),
        ("[{user: /help}]", "the bot also says 'Help'", 2),
        (
            "[{user: /all}, {bot: {text: To all, chat: 'sms:8'}}]",
            "chat: the message was sent with `to`, expected to: {'group': 'A'}",
            2,
        ),
        ("[{bot: x}]", "the bot says nothing; expected 'x'", 2),
        ("[{user: /help}, {bot: Help}, {press: Stop}]", "no message has the button 'Stop'", 2),
        ("[{user: /help}, {bot: {text: Help, buttons: []}}]", "buttons: ['Go'], expected []", 2),
        ("[{usr: /help}]", "a step has no 'usr'; did you mean user?", 2),
        ("[{variables: {person.name: Anna}}]", "person.name is None, expected 'Anna'", 2),
        ("[{variables: Anna}]", "variables is a mapping, not 'Anna'", 2),
        ("[{form: [1]}]", "form is a mapping, not [1]", 2),
        ("[{form: {sign_up: Anna}}]", "the form sign_up is a mapping, not 'Anna'", 2),
        ("[{returns: 5}]", "returns is a mapping, not 5", 2),
        ("[{returns: {http_request: ok}}]", "what http_request returns is a mapping, not 'ok'", 2),
    ],
)
async def test_a_failure_names_its_place_and_the_difference(
    folder: BotFolder, steps: str, problem: str, line: int
) -> None:
    folder.write("tests/a.yaml", f"t:\n  steps: {steps}\n")
    (verdict,), _ = await run_tests(folder.folder, load(folder.folder).bot)
    assert (verdict.problem, verdict.place.file, verdict.place.line) == (problem, "tests/a.yaml", line)


WHO = 'who: {actions: [{type: send, text: "{directory_id|fallback:-} {directory_name|fallback:-}"}]}'
WHO_TESTS = """
a member and a stranger:
  at: 2026-12-01 10:00
  steps:
    - {user: {event_text: a, directory_id: ""}, bot: "- -"}
    - {user: a, bot: 7 Anna}
    - {wait: 23h, bot: 7 Anna}
    - {user: {event_text: a, directory_id: ""}, bot: "- -"}
"""


async def test_a_schedule_for_a_group_has_the_fields_of_its_members_and_a_stranger_has_none(tmp_path: Path) -> None:
    bot = BotFolder(tmp_path).write("scenarios/s.yaml", WHO).write("triggers.yaml", "text: {'*': s.who}")
    bot.write("schedule.yaml", "r: {each: day 9:00, for: {group: A}, scenario: s.who}").write("tests/a.yaml", WHO_TESTS)
    (verdict,), _ = await run_tests(bot.folder, load(bot.folder).bot)
    assert verdict.problem == ""


async def test_what_asks_a_service_outside_is_named_unless_the_test_says_what_it_returns(folder: BotFolder) -> None:
    steps = "{user: /web, bot: {contains: Работу такого вида}}"
    folder.write(
        "tests/a.yaml",
        f"a: {{steps: [{steps}]}}\nb: {{steps: [{steps}], returns: {{http_request: {{response_data: 1}}}}}}\n"
        f"c: {{steps: [{steps}], fail: [s.web:1]}}\nd: {{steps: [{{user: /web, bot: x}}]}}",
    )
    verdicts, _ = await run_tests(folder.folder, load(folder.folder).bot)
    assert [len(one.samples) for one in verdicts] == [1, 0, 0, 1]
    ((place, said),) = verdicts[0].samples.items()
    assert (place.file, "returns: {s.web:1: {…}}" in str(said)) == ("scenarios/s.yaml", True)
    assert [one.problem for one in verdicts[:3]] == ["", "", ""]
    assert "expected 'x'; s.web:2 job failed: There is no kind of job" in verdicts[3].problem, "what failed is named"


def test_the_command_prints_failures_and_a_summary(folder: BotFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write("tests/a.yaml", "good: {steps: []}\nbad: {steps: [{bot: x}]}\n")
    assert main(["scenarios", "test", str(folder.folder)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith(f"{folder.folder}/tests/a.yaml:2:")
    assert "says nothing" in printed[0]
    assert printed[-1] == "1 test passed, 1 failed"


def test_a_chat_in_the_terminal_answers_and_reloads(
    folder: BotFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = iter(["/help", "[Go]", "Anna", ":variables", ":wait 1d", "/broken", "/again", "/mistaken"])

    def read(_: str) -> str:
        line = next(lines, None)
        if line is None:
            raise EOFError
        if line == "/again":
            folder.write("scenarios/s.yaml", SCENARIOS.replace("text: Help", "text: Changed"))
            return "/help"
        if line == "/mistaken":
            folder.write("scenarios/s.yaml", SCENARIOS.replace("text: Help", "txt: Help"))
            return "/help"
        return line

    monkeypatch.setattr("builtins.input", read)
    assert main(["scenarios", "chat", str(folder.folder)]) == 0
    printed = capsys.readouterr()
    for expected in ("» Help", "[Go → s.start]", "Your name?", "Room, Anna?", '"name": "Anna"', "» Changed"):
        assert expected in printed.out, printed.out
    assert "s.broken:1 modify_promo failed: there is no promo with the id 77" in printed.err
    assert "UNKNOWN_FIELD: send has no field 'txt'" in printed.err
    assert printed.out.count("» Changed") == 2, "a version with errors is not in force"


def test_a_chat_has_several_people_groups_channels_files_and_old_buttons(
    folder: BotFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["/help", "/desk", ":photo F1", ":contact +79990000001", "[Go]", ":as 8", ":in -100", "hi", ":reply hm"]
    lines += [":in", ":channel sms", "/help", ":nonsense"]
    monkeypatch.setattr("sys.stdin", StringIO("\n".join(lines)))
    assert main(["scenarios", "chat", str(folder.folder)]) == 0
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    answered = [line.removeprefix("» ") for line in printed if line.startswith("»")]
    assert answered == [
        *("Help", "A photo?", "A phone?", "+79990000001", "<b>Your name?</b>"),
        *("-100 -", "-100 -100 -", "Help", "1. Go"),
    ]
    assert sum(line.startswith(":wait 1d") for line in printed) == 2, "the help, again after what is no command"


@pytest.mark.parametrize(("late", "said"), [("", True), (", late: now", True), (", late: skip", False)])
async def test_a_date_that_is_set_too_late_starts_once(tmp_path: Path, late: str, said: bool) -> None:
    """A wash was booked 47 minutes before: the reminder of an hour before never came."""
    book = "{actions: [{type: set, variables: {person.starts: 2026-12-01 12:00}}]}"
    steps = "[{user: /b}, {wait: 10m}, " + ("{bot: reminder}, " if said else "") + "{wait: 1d}]"
    folder = BotFolder(tmp_path).write("variables.yaml", "person: {starts: date}\n")
    folder.write("schedule.yaml", f"r: {{before: person.starts, by: 1h, scenario: a.r{late}}}\n")
    folder.write("triggers.yaml", "text: {exact: {/b: a.b}}\n")
    folder.write("scenarios/a.yaml", f"b: {book}\nr: {{actions: [{{type: send, text: reminder}}]}}\n")
    folder.write("tests/t.yaml", f"t: {{at: 2026-12-01 11:13, steps: {steps}}}\n")
    assert [one.problem for one in (await run_tests(tmp_path, load(tmp_path, {}).bot))[0]] == [""]


PRESSED = """
start:
  actions:
    - {type: send, text: "{chat_type}{attachments} {is_bot}", attachment: "{attachments}", inline: [[{Take: take}]]}
take:
  actions:
    - {type: answer_press, text: You have a seat}
    - {type: send, text: No note here, chain: failed}
"""


@pytest.mark.parametrize(("channel", "note"), [("telegram-bot", True), ("vk", True), ("max", False), ("sms", False)])
async def test_a_press_is_answered_in_a_test_where_it_is_answered_to_people(
    tmp_path: Path, channel: str, note: bool
) -> None:
    """A test got the message in place of the note in every channel; a person in MAX got neither."""
    button = {"user": "1"} if channel == "sms" else {"press": "Take"}
    steps = [
        {"user": "/start", "channel": channel},
        {"bot": {"contains": "private False"}},
        {**button, "channel": channel},
        *([] if note else [{"bot": "No note here"}]),
    ]
    folder = BotFolder(tmp_path).write("triggers.yaml", "text: {exact: {/start: a.start}}\n")
    folder.write("scenarios/a.yaml", PRESSED).write("tests/t.yaml", json.dumps({"t": {"steps": steps}}))
    assert [one.problem for one in (await run_tests(tmp_path, load(tmp_path, {}).bot))[0]] == [""]
