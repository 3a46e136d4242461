"""A small bot to begin with: a menu, a form of one step with a validation, a reply to everything else."""

from collections.abc import Mapping
from pathlib import Path

FILES: Mapping[str, str] = {
    "triggers.yaml": """\
# What people write or press → the scenario that answers. Reference: docs/scenarios.md
text:
  exact:
    "/start": menu.start
  state:
    waiting_for_name: form.check_name
  "*": menu.unknown
callback:
  exact:
    "My name": form.ask_name
""",
    "bot.yaml": """\
# The commands of the bot's menu, and who may do what.
commands:
  - {command: start, description: The menu, scope: all_private_chats}
roles: {}
""",
    "scenarios/menu.yaml": """\
start:
  actions:
    - type: send
      text: "Hello, {first_name|fallback:friend}!"
      inline:
        - ["My name", {"Help": help}]

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
# Two steps: a question that sets a state, and the answer, which the trigger `state` leads here.
ask_name:
  actions:
    - {type: user, user_state: waiting_for_name, expire: 10m}
    - {type: send, text: "What is your name?", chain: completed}

check_name:
  actions:
    - type: validator
      rules:
        event_text:
          - {rule: length_min, value: 2}
          - {rule: length_max, value: 40}
    - type: send
      text: "A name has 2 to 40 letters. Please try again."
      chain: failed
      chain_drop: completed
    - {type: user, user_state: "", chain: true}
    - type: send
      text: "Nice to meet you, {event_text}!"
      inline:
        - [{"Back": menu.start}]
      chain: completed
""",
}
"""Path in the bot's folder → content."""


def write(folder: Path, files: Mapping[str, str] = FILES) -> list[str]:
    """Write the files into a folder that is new or empty; return their paths. Raises FileExistsError otherwise."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(folder)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)
