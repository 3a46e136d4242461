"""`./ada docs`: the pages that are made from the code: keys, scripts, states, jobs, actions, modifiers, fields of
events, answers of providers.

A test compares them with those here.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

from cli.command import FAILURE, SUCCESS, Command
from core.jobs import states as jobs
from core.model.states import NEXT, RANK, VERDICT_MEANINGS, DeliveryState, Reason, Status, TaskState
from core.redis import library
from core.redis.keys import KEYS
from couriers.channel import channels
from couriers.sending import Deferred, Halted, Outcome, Rejected, Scope, Sent, Split
from scenarios.actions import own_actions
from scenarios.bot.event_fields import FIELDS, OF_ADA
from scenarios.engine import run as actions
from scenarios.placeholders import MODIFIERS
from scenarios.schema.reference import reference

PLACE = Path(__file__).resolve().parents[3] / "docs"
_MADE = "<!-- Made by `./ada docs` from {source}. Do not edit. -->\n\n"


def keys_page() -> str:
    """Return every Redis key: name, type, what removes it, content."""
    rows = [(f"`{key.pattern}`", key.type, str(key.lifetime), key.what) for key in KEYS.values()]
    return (
        _MADE.format(source="core/redis/keys/")
        + "# Keys\n\n`{s}` is the shard tag, `{0}` by default; `<…>` are parts.\n\n"
        + _table(("key", "type", "removed by", "what"), rows)
        + _CONTRACT
    )


_CONTRACT = """
## For couriers in other languages

Subscribe to `__keyspace@0__:delivery:*` for `del` and `expired`; the suffix names the history:
`delivery:{0}:42:1763…` vanished, `history:{0}:42:1763…` holds what to deliver. Events are only a wake-up signal: they
are lost at every disconnect. Guaranteed work distribution goes through the functions (functions.md): `claim` on tube =
channel, then `settle` with the token it returned.
"""


def functions_page() -> str:
    """Return every Lua function with its header."""
    parts = [_MADE.format(source="lua/*/functions/*.lua"), "# Functions\n\n", _FUNCTIONS]
    for name in library.names():
        text = (PLACE.parent / "lua" / library.file_of(name)).read_text()
        header = [line.removeprefix("-- ") for line in takewhile(lambda line: line.startswith("--"), text.splitlines())]
        parts.append(f"## {name}\n\n{library.function(name).purpose}\n\n```\n" + "\n".join(header[1:]) + "\n```\n\n")
    return "".join(parts).rstrip() + "\n"


_FUNCTIONS = """They are one library of the server. Its name, `ada_<version>`, is in the key `library`, and a call is
`FCALL ada_<version>_put 2 queue:{0}:counters guard:{0} {0} 0 …`. Every function has two keys: `queue:{s}:counters`
routes the call to the shard, and `guard:{s}`, which never exists, has a cluster refuse the call while it moves the slot
key by key (docs/cluster.md). It begins with two arguments that the headers leave out: the shard tag (`{0}`) and an
offset to the server's clock in ms (0). `int` is a decimal number, `json` a JSON text, `rest` all remaining arguments;
`packed` arguments are one word, a MessagePack array. Every function is safe to repeat.

A process of Ada loads its library at its start, and again when the server has lost it. Two versions run side by side. A
version that no process was started with for 30 days is removed.

"""


def states_page() -> str:
    """Return the page of states and their transitions; statuses, reasons, verdicts."""
    rows = [
        (verb, str(before or "–"), ", ".join(after)) for verb, steps in NEXT.items() for before, after in steps.items()
    ]
    return (
        _MADE.format(source="core/model/states.py")
        + "# States\n\n## A task\n\n"
        + _diagram(NEXT, (TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED, TaskState.EXPIRED))
        + "\n"
        + _table(("verb", "from", "to"), rows)
        + _LOCKED
        + "\n## A delivery\n\n"
        + _words(DeliveryState)
        + "\n## The outcome of one recipient in one channel\n\n"
        + _table(("status", "rank"), [(str(status), str(RANK[status])) for status in Status])
        + "\nAn outcome replaces another one if its rank is higher; delivery reports may come in any order.\n"
        + "\n## Reasons\n\n"
        + _words(Reason)
        + "\n## Verdicts\n\n"
        + _table(("verdict", "meaning"), [(str(verdict), meaning) for verdict, meaning in VERDICT_MEANINGS.items()])
    )


def scenario_states_page() -> str:
    """Return the page of the states of an action of a scenario, their transitions, and what causes them."""
    rows = [
        (verb, str(before or "–"), ", ".join(after), actions.VERB_MEANINGS[verb])
        for verb, steps in actions.NEXT.items()
        for before, after in steps.items()
    ]
    causes = [(str(cause), meaning) for cause, meaning in actions.CAUSE_MEANINGS.items()]
    return (
        _MADE.format(source="scenarios/engine/run.py")
        + "# States of an action\n\n"
        + _diagram(actions.NEXT, sorted(actions.OUTCOMES))
        + "\n"
        + _table(("verb", "from", "to", "when"), rows)
        + "\n`completed`, `failed`, `unknown` and `drop` are final: the outcome that the next `chain` names."
        + " There `failed` names `unknown`, too.\n"
        + "\n## What released or dropped an action\n\n"
        + _table(("cause", "meaning"), causes)
    )


def job_states_page() -> str:
    """Return the page of the states of a job, their transitions, and who may end a pause."""
    rows = [
        (verb, str(before or "–"), str(after), jobs.VERB_MEANINGS[verb])
        for verb, steps in jobs.NEXT.items()
        for before, after in steps.items()
    ]
    diagram: dict[str, dict[Any, tuple[str, ...]]] = {
        verb: {before: (after,) for before, after in steps.items()} for verb, steps in jobs.NEXT.items()
    }
    order = ", ".join(f"`{actor}`" for actor in jobs.Actor)
    return (
        _MADE.format(source="core/jobs/states.py")
        + "# States of a job\n\n"
        + _diagram(diagram, ())
        + "\n"
        + _table(("verb", "from", "to", "when"), rows)
        + f"\nA pause is ended or replaced only by the actor that made it, or a later one of: {order}.\n"
        + "A shutdown, a deploy or a crash changes no state.\n"
    )


_LOCKED = """
`locked` is not stored: it is a `ready` task that is not the head of its lane.
A `taken` task that is cancelled is flagged and ends when its worker settles or releases it, or when its lease ends.
"""


def modifiers_page() -> str:
    """Return every modifier of placeholders."""
    rows = [(f"`{modifier.written}`", modifier.explanation) for modifier in MODIFIERS.values()]
    return (
        _MADE.format(source="scenarios/placeholders/modifiers/*.py")
        + "# Modifiers of placeholders\n\nThe guide is in [scenarios-placeholders.md](scenarios-placeholders.md).\n\n"
        + _table(("modifier", "result"), rows)
    )


def _words(values: Iterable[str]) -> str:
    return ", ".join(f"`{value}`" for value in values) + "\n"


def _diagram(table: Mapping[str, Mapping[Any, Iterable[str]]], final: Iterable[str]) -> str:
    arrows = [
        f"    {before or '[*]'} --> {after}: {verb}"
        for verb, steps in table.items()
        for before, afters in steps.items()
        for after in afters
    ]
    ends = [f"    {end} --> [*]" for end in final]
    return "\n".join(["```mermaid", "stateDiagram-v2", *arrows, *ends, "```", ""])


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def actions_page() -> str:
    """Return every action of scenarios with its fields."""
    return _MADE.format(source="scenarios/actions") + reference(own_actions().values())


def event_fields_page() -> str:
    rows = [(f"`{name}`", meaning) for name, meaning in FIELDS.items()]
    return _MADE.format(source="scenarios/bot/event_fields.py") + _EVENT_FIELDS + _table(("field", "meaning"), rows)


_EVENT_FIELDS = """# Fields of events

What an event is, and where it comes from: [events.md](events.md). A field without a meaning here is named after it.
`POST /v1/updates` takes all of them but these, which Ada sets: {of_ada}.

""".format(of_ada=", ".join(f"`{name}`" for name in OF_ADA))

_REQUIREMENTS = """# Requirements

What Ada must do, row by row. Tests, comments and pages name a row by its id, for example (D-13).
`./ada test --rows` lists the tests that show each row.
"""
_SECTIONS = {
    "D": "Delivery",
    "K": "Queue",
    "C": "Scenarios",
    "U": "Long-running jobs of users",
    "W": "Web console",
    "M": "Channels",
    "S": "Scale",
    "R": "The way back: confirmations and questions",
    "I": "Other systems of a university or school",
}


def requirements_page() -> str:
    """Return every row of the specification, by section."""
    parts = [_MADE.format(source="tests/support/rows.txt"), _REQUIREMENTS]
    section = ""
    for line in (PLACE.parent / "tests" / "support" / "rows.txt").read_text(encoding="utf-8").splitlines():
        row, _, title = line.partition(" ")
        if row[0] != section:
            section = row[0]
            parts.append(f"\n## {_SECTIONS[section]}\n\n| row | what must work |\n| --- | --- |\n")
        parts.append(f'| <a id="{row.lower()}"></a>{row} | {title.replace("|", "/")} |\n')
    return "".join(parts)


_ANSWERS_HEAD = ("step", "answer", "concerns", "what follows")
_ANSWERS = """# Which answer concerns whom

An answer concerns the account only where that is certain: all its messages wait then, or an operator must act. Every
other answer, silence and a cut connection concern one recipient, and the others go on (D-53):
tests/couriers/test_one_recipient_delays_no_other.py.

"Counts" means that the attempt is one of those after which the message ends. Without a wait the pauses double. A wait
that the provider named does not count, unless this message has triggered a wait of the account. A server that cannot
be reached is not the fault of a recipient: the attempt counts only if other messages got through meanwhile. So
nothing ends while the server is down for everybody, and a recipient whose attempts bring the connection down ends
while others are sent.
"""


def answer_tables() -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Emit the titles and the rows of each channel that documents its answers, by the couriers' own functions.

    Imports the libraries of all providers.
    """
    for module in filter(None, (channel.outcomes for channel in channels().values())):
        for title, rows in import_module(module).answer_tables().items():
            yield title, [(step, answer, concerns(outcome), follows(outcome)) for step, answer, outcome in rows]


def concerns(outcome: Outcome) -> str:
    match outcome:
        case Halted():
            return "**account**"
        case Deferred(scope=Scope.ACCOUNT | Scope.METHOD, after=timedelta()):
            return "**account**"
        case Deferred(scope=Scope.CHAT):
            return "chat"
        case Split():
            return "one of the batch"
    return "recipient"


def follows(outcome: Outcome) -> str:
    match outcome:
        case Sent():
            return "sent"
        case Halted():
            return "stopped until an operator acts; the messages stay queued"
        case Rejected(reason):
            return f"failed ({reason})"
        case Deferred(reason, None):
            return f"again, counts; then failed ({reason})"
        case Deferred(reason, timedelta() as after):
            return f"again after {after.total_seconds():g} s{', counts' if outcome.is_guess else ''} ({reason})"
        case Split():
            return "the batch is sent in halves"
    return "it may have been sent: again under the same id where the provider recognises it, else unknown (answer_lost)"


def answers_page() -> str:
    """Return which answer of a provider concerns whom."""
    parts = [f"\n## {title}\n\n{_table(_ANSWERS_HEAD, rows)}" for title, rows in answer_tables()]
    return _MADE.format(source="couriers/*/outcomes.py") + _ANSWERS + "".join(parts)


PAGES: dict[str, Callable[[], str]] = {
    "answers.md": answers_page,
    "events-fields.md": event_fields_page,
    "jobs-states.md": job_states_page,
    "keys.md": keys_page,
    "scenarios-actions.md": actions_page,
    "scenarios-modifiers.md": modifiers_page,
    "scenarios-states.md": scenario_states_page,
    "functions.md": functions_page,
    "requirements.md": requirements_page,
    "states.md": states_page,
}


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is stale")


def write(arguments: Namespace) -> int:
    stale = [name for name, page in PAGES.items() if not _is_current(name, page())]
    for name in stale:
        print(f"docs/{name} {'is stale' if arguments.check else 'written'}")
        if not arguments.check:
            (PLACE / name).write_text(PAGES[name]())
    return FAILURE if stale and arguments.check else SUCCESS


def _is_current(name: str, text: str) -> bool:
    return (PLACE / name).exists() and (PLACE / name).read_text() == text


COMMANDS = {"docs": Command(declare, write)}
