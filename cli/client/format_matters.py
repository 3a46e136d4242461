"""The matters of the overview in words: what needs an operator, as `GET /v1/overview` names it. Pure."""

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

from cli.client.local_times import shown_moment
from core.model.clock import from_ms
from core.model.text.characters import counted

SENTENCES: Mapping[str, str] = {
    "overdue": "no worker takes due tasks{since}",
    "data_lost": "the server has lost data",
    "halted": "{subject} has stopped",
    "not_running": "{subject} should run and does not{since}",
    "unserved": "no process works on {tasks} of {subject}",
    "unanswered": "the bot of {subject} receives messages, and no process answers",
    "server_setting": "{subject} is wrong on the server",
    "not_polling": "the bot of {subject} gets no messages{since}",
    "failures": "{count} of {of} messages of {subject} did not arrive in the last hour",
    "unclear": "{count} of {of} messages of {subject} may have arrived or not in the last hour",
    "jobs_failed": "{count} jobs have failed for good",
    "sync": "the people of {subject} were not synchronised{since}",
    "office": "nobody reads the office {subject}",
    "webhook": "{subject} takes no messages{since}, {count} were given up",
    "dead_letters": "{tasks} were set aside, most of them for",
    "paused": "{subject} is paused{since} by {by}",
    "throttled": "the provider asks {subject} to wait until {when}",
}
"""Kind → what is wrong, without the reason, which follows."""

_STOPS = ("overdue", "halted", "unserved", "paused", "throttled")


def format_matter(matter: Mapping[str, Any], zone: tzinfo) -> str:
    """Return one line, with the reason and what the provider said."""
    when = shown_moment(from_ms(matter["at"]), zone) if matter.get("at") else ""
    count, kind = matter.get("count", 0), matter["kind"]
    text = SENTENCES[kind].format(
        subject=matter.get("subject", ""),
        count=count,
        tasks=counted(count, "ready task" if kind == "unserved" else "task"),
        of=matter.get("of", 0),
        by=matter.get("by", ""),
        since=f" since {when}" if when else "",
        when=when,
    )
    words = f" ({matter['words']})" if matter.get("words") else ""
    return text + (f": {matter['reason']}" if matter.get("reason") else "") + words


def format_remedy(matter: Mapping[str, Any], zone: tzinfo) -> str:
    """Return the line, and the command that mends it."""
    command = f"; `{matter['command']}`" if matter.get("command") else ""
    return format_matter(matter, zone) + command


def stops(matter: Mapping[str, Any], channels: frozenset[str]) -> bool:
    """Return whether messages of one of these channels wait because of this matter."""
    return matter["kind"] in _STOPS and matter.get("subject", "") in channels | {""}
