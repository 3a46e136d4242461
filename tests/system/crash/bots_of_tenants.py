"""Bots of several tenants with the same names in them, the lines that people write to them, and the expected texts.

Every text names its tenant, its person and its line, so none can be taken for another one.
"""

from pathlib import Path

from tests.scenarios.bot_folder import BotFolder

TENANTS = ("school-A", "school-B")
BOT = """
start: {actions: [{type: send, text: "TENANT {user_id} menu", inline: [[{"Press": pressed}]]}]}
form:
  actions:
    - {type: ask, text: "TENANT {user_id} {event_text}?", save: person.answer, form: storm}
    - {type: set, variables: {person.forms: {add: STEP}}, chain: completed}
    - {type: send, text: "TENANT {user_id} {answer}", chain: completed}
keyed:
  actions:
    - type: http_request
      url: "${BOOK}"
      headers: {X-Secret: "${SECRET}"}
      json: {person: "{user_id}", line: "{event_text}"}
      idempotency_key: true
      save: {run.number: body.number}
    - {type: send, text: "TENANT {user_id} {event_text} is {run.number}", chain: completed}
plain:
  actions:
    - type: http_request
      url: "${BOOK}"
      headers: {X-Secret: "${SECRET}"}
      json: {person: "{user_id}", line: "{event_text}"}
    - {type: send, text: "TENANT {user_id} {event_text} is done", chain: completed, chain_drop: [failed, unknown]}
    - {type: send, text: "TENANT {user_id} {event_text} is unclear", chain: drop}
pressed:
  actions:
    - {type: answer_press, text: "TENANT {user_id} note"}
    - {type: set, variables: {person.presses: {add: STEP}}}
    - {type: send, text: "TENANT {user_id} press {person.presses}", callback_edit: false, chain: completed}
tick: {actions: [{type: send, text: "TENANT {user_id} tick {due}"}]}
"""
SCHEDULE = 'tick: {each: "* * * * *", for: people, scenario: s.tick}\n'
LINES = ("form", "answer", "keyed", "plain")
"""The first words of what a person writes in a round, in order; then it presses a button."""


def token_of(tenant: str) -> str:
    return f"{5000 + ord(tenant[-1])}:sandbox"


def step_of(tenant: str) -> int:
    """By how much each run of the bot counts."""
    return 1 + TENANTS.index(tenant)


def write_bot(root: Path, tenant: str, book: str) -> BotFolder:
    folder = BotFolder(root / tenant)
    folder.write("variables.yaml", "person: {answer: text, forms: number, presses: number}\nrun: {number: number}\n")
    folder.write("scenarios/s.yaml", BOT.replace("TENANT", tenant).replace("STEP", str(step_of(tenant))))
    folder.write(".env", f"ADA_BOT_TOKEN={token_of(tenant)}\nBOOK={book}/{tenant}\nSECRET=secret of {tenant}\n")
    started = "{form: s.form, keyed: s.keyed, plain: s.plain}"
    return folder.write("triggers.yaml", f"text: {{exact: {{/start: s.start}}, starts_with: {started}}}\n")
