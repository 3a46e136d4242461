"""Delivery reports: the reports of a message, and the URL that is called for each."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote_plus, urlsplit, urlunsplit

from sandbox.events import Fault

DELIVERED, FAILED, BUFFERED, ACCEPTED, REJECTED = 1, 2, 4, 8, 16  # bits of dlr-mask, and values of %d

_SMPP_NAMES = {DELIVERED: "DELIVRD", FAILED: "UNDELIV", BUFFERED: "ENROUTE", ACCEPTED: "ACCEPTD", REJECTED: "REJECTD"}
_SEQUENCES = {
    "no_report": (),
    "report_failed": (ACCEPTED, FAILED),
    "report_rejected": (REJECTED,),
    "report_buffered": (ACCEPTED, BUFFERED, DELIVERED),
    "report_twice": (ACCEPTED, ACCEPTED, DELIVERED, DELIVERED),
    "report_out_of_order": (DELIVERED, ACCEPTED),
}
_ESCAPE = re.compile(r"%([A-Za-z%])")
_CONSTANT = re.compile(r"(?<==)([^&%]+)(?=&|$)")  # a query value without escapes


@dataclass(frozen=True, slots=True)
class ReportedMessage:
    """The message that a delivery report is about."""

    reference: str
    sender: str
    receiver: str
    username: str
    at: datetime


def report_states(fault: Fault | None, mask: int) -> list[int]:
    """Return the states that are reported for a message, in order, of those its mask requests."""
    states = _SEQUENCES.get(fault.name if fault else "", (ACCEPTED, DELIVERED))
    return [state for state in states if state & mask]


def is_delivered(fault: Fault | None) -> bool:
    """Return whether the recipient receives the message."""
    return fault is None or fault.name not in ("report_failed", "report_rejected")


def escape_values(message: ReportedMessage) -> dict[str, str]:
    """Return the values of Kannel's escapes that delivery reports and incoming messages share."""
    return {
        "%": "%",
        "F": message.reference,
        "I": message.reference,
        "i": "sandbox",
        "n": message.username,
        "o": "",
        "p": message.receiver,
        "q": message.receiver,
        "P": message.sender,
        "Q": message.sender,
        "t": message.at.strftime("%Y-%m-%d %H:%M:%S"),
        "T": str(int(message.at.timestamp())),
    }


def report_url(dlr_url: str, message: ReportedMessage, state: int) -> str:
    """Replace the escapes of a dlr-url (Kannel user guide, "Parameters (Escape Codes)")."""
    return replace_escapes(dlr_url, {**escape_values(message), "d": str(state), "A": report_text(message, state)})


def replace_escapes(url: str, values: Mapping[str, str]) -> str:
    """Replace the escapes. Unknown ones stay, as with Kannel. The colons of a time are not quoted."""
    return _ESCAPE.sub(lambda found: quote_plus(values[found[1]], safe=":%") if found[1] in values else found[0], url)


def report_text(message: ReportedMessage, state: int) -> str:
    """Return the text of a delivery report in the form of SMPP 3.4, appendix B."""
    day = message.at.astimezone(UTC).strftime("%y%m%d%H%M")
    delivered = int(state == DELIVERED)
    error = "000" if state in (DELIVERED, BUFFERED, ACCEPTED) else "001"
    return (
        f"id:{message.reference} sub:001 dlvrd:{delivered:03} submit date:{day} done date:{day} "
        f"stat:{_SMPP_NAMES[state]} err:{error} text:"
    )


def with_forged_query(dlr_url: str) -> str:
    """Return the URL with each constant of its query changed, or with its path changed if the query has none."""
    split = urlsplit(dlr_url)
    query = _CONSTANT.sub(r"forged\1", split.query)
    path = f"{split.path}-forged" if query == split.query else split.path
    return urlunsplit(split._replace(path=path, query=query))
