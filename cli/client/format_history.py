"""A history as a person reads it. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

History = Mapping[str, Any]

VERDICTS = {
    "scheduled": "on its way",
    "all_reached": "everybody was reached",
    "partly": "somebody was reached, but not every courier has reported",
    "nothing_worked": "nothing worked",
    "nobody_to_reach": "there was nobody to reach",
}


def whole(history: History) -> str:
    return "\n".join([*head(history), "", *people(history)])


def head(history: History) -> Iterator[str]:
    sender = history["sender"]
    yield f"{history['id']}  {history['state']}: {VERDICTS.get(history['verdict'], history['verdict'])}"
    yield f"from  {sender.get('name') or sender['id']}, by {history['origin']}"
    yield f"text  {shortened(history['text'])}"
    for name in ("created_at", "deliver_at", "moved_from", "released_at", "finished_at", "expires_at"):
        if history.get(name):
            yield f"{name.replace('_', ' '):<12} {history[name]}"
    yield "  ".join(f"{name} {count}" for name, count in history["counts"].items() if count)


def people(history: History) -> Iterator[str]:
    for one in history["recipients"]:
        outcomes = "  ".join(outcome(channel, what) for channel, what in one["outcomes"].items())
        yield f"  {name_of(one):<24} {outcomes}"
    if history.get("next"):
        yield "  …"


def outcome(channel: str, what: Mapping[str, Any]) -> str:
    reason = f" ({what['reason']})" if what.get("reason") else ""
    return f"{channel} {what['status']}{reason}"


def name_of(recipient: Mapping[str, Any]) -> str:
    name = recipient.get("name")
    return f"{name} ({recipient['id']})" if name else str(recipient["id"])


def change(event: str, data: Mapping[str, Any]) -> str:
    """One line of a delivery's stream."""
    if event == "outcome":
        return f"{data['recipient']!s:<24} {outcome(data['channel'], data['outcome'])}"
    return str(data["state"])


def shortened(text: str, limit: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
