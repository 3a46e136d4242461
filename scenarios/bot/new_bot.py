"""A small bot to begin with: a menu, a form with a checked answer and a choice, a reply to everything else, a test."""

from collections.abc import Mapping
from pathlib import Path

FILES: Mapping[str, str] = {
    "triggers.yaml": """\
# What people write → the scenario that answers. Reference: docs/scenarios.md
text:
  exact:
    "/start": menu.start
  "*": menu.unknown
""",
    "bot.yaml": """\
# The commands of the bot's menu, and who may do what.
commands:
  - {command: start, description: The menu, scope: all_private_chats}
roles: {}
""",
    "variables.yaml": """\
# What the bot remembers of each person.
person:
  name: text
  day: {options: [Monday, Thursday]}
""",
    "scenarios/menu.yaml": """\
start:
  actions:
    - type: send
      text: "Hello, {person.name|fallback:friend}!"
      inline:
        - [{"Sign up": form.sign_up}, {"Help": help}]

help:
  actions:
    - type: send
      text: "Press a button, or write /start."
      inline:
        - [{"Back": start}]

unknown:
  actions:
    - type: send
      text: "I do not know “{event_text}”. Write /start."
""",
    "scenarios/form.yaml": """\
# `ask` sends a question and waits for the answer; `save` remembers it. `./ada forms course` lists all answers.
sign_up:
  actions:
    - type: ask
      text: "What is your name?"
      save: person.name
      form: course
      rules:
        - {rule: length_min, value: 2}
        - {rule: length_max, value: 40}
      hint: "A name has 2 to 40 letters. Please try again."
    - type: ask
      text: "Which day suits you, {person.name}?"
      save: person.day
      form: course
      chain: completed
    - type: send
      text: "See you on {person.day}, {person.name}!"
      inline:
        - [{"Back": menu.start}]
      chain: completed
""",
    "tests/sign_up.yaml": """\
# A person signs up: what they write and press, and how the bot must answer.
the name is checked and remembered:
  steps:
    - user: /start
    - bot: {text: "Hello, friend!", buttons: [Sign up, Help]}
    - press: Sign up
    - bot: What is your name?
    - user: A
    - bot: A name has 2 to 40 letters. Please try again.
    - user: Anna
    - bot: {text: "Which day suits you, Anna?", buttons: [Monday, Thursday]}
    - press: Monday
    - bot: See you on Monday, Anna!
    - form: {course: {name: Anna, day: Monday}}
    - user: /start
    - bot: {contains: "Hello, Anna!"}
""",
}
"""Path in the bot's folder → content."""


TEACHER = Path(__file__).parents[1] / "teacher"
"""The dialog of teachers as a bot (docs/bots.md)."""


def teacher_files() -> Mapping[str, str]:
    """Return the files of the dialog of teachers, to be copied and changed."""
    return {path.relative_to(TEACHER).as_posix(): path.read_text("utf-8") for path in sorted(TEACHER.rglob("*.yaml"))}


def write(folder: Path, files: Mapping[str, str] = FILES) -> list[str]:
    """Write the files into a folder that is new or empty; return their paths. Raises FileExistsError otherwise."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(folder)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)
