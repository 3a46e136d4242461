"""Delivery reports: which ones a message gets, and the address that is called for each."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote_plus, urlsplit, urlunsplit

from sandbox.events import Fault

DELIVERED, FAILED, BUFFERED, ACCEPTED, REJECTED = 1, 2, 4, 8, 16  # the bits of dlr-mask, and what %d says

_STATES = {DELIVERED: "DELIVRD", FAILED: "UNDELIV", BUFFERED: "ENROUTE", ACCEPTED: "ACCEPTD", REJECTED: "REJECTD"}
_HISTORIES = {
    "no_report": (),
    "report_failed": (ACCEPTED, FAILED),
    "report_rejected": (REJECTED,),
    "report_buffered": (ACCEPTED, BUFFERED, DELIVERED),
    "report_twice": (ACCEPTED, ACCEPTED, DELIVERED, DELIVERED),
    "report_out_of_order": (DELIVERED, ACCEPTED),
}
_ESCAPE = re.compile(r"%([A-Za-z%])")
_CONSTANT = re.compile(r"(?<==)([^&%]+)(?=&|$)")  # a value without escapes


@dataclass(frozen=True, slots=True)
class Reported:
    """The message a report is about."""

    reference: str
    sender: str
    receiver: str
    username: str
    moment: datetime


def history(fault: Fault | None, mask: int) -> list[int]:
    """Return the reports that a message gets, in their order, of those its mask asks for."""
    states = _HISTORIES.get(fault.name if fault else "", (ACCEPTED, DELIVERED))
    return [state for state in states if state & mask]


def reaches(fault: Fault | None) -> bool:
    """Tell whether the person gets the message."""
    return fault is None or fault.name not in ("report_failed", "report_rejected")


def escapes(message: Reported) -> dict[str, str]:
    """Return what Kannel's escapes stand for, those that reports and incoming messages have in common."""
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
        "t": message.moment.strftime("%Y-%m-%d %H:%M:%S"),
        "T": str(int(message.moment.timestamp())),
    }


def address(dlr_url: str, message: Reported, state: int) -> str:
    """Fill the escapes of a dlr-url (Kannel user guide, "Parameters (Escape Codes)")."""
    return fill(dlr_url, {**escapes(message), "d": str(state), "A": receipt(message, state)})


def fill(url: str, values: Mapping[str, str]) -> str:
    """Fill escapes; unknown ones stay as they are, as Kannel leaves them. Colons of a time stay readable."""
    return _ESCAPE.sub(lambda found: quote_plus(values[found[1]], safe=":%") if found[1] in values else found[0], url)


def receipt(message: Reported, state: int) -> str:
    """Return the text of a receipt in the form of SMPP 3.4, appendix B."""
    day = message.moment.astimezone(UTC).strftime("%y%m%d%H%M")
    good = int(state == DELIVERED)
    error = "000" if state in (DELIVERED, BUFFERED, ACCEPTED) else "001"
    return (
        f"id:{message.reference} sub:001 dlvrd:{good:03} submit date:{day} done date:{day} "
        f"stat:{_STATES[state]} err:{error} text:"
    )


def forged(dlr_url: str) -> str:
    """Return the address with every constant of its query changed, or its path when the query has none."""
    split = urlsplit(dlr_url)
    query = _CONSTANT.sub(r"forged\1", split.query)
    path = f"{split.path}-forged" if query == split.query else split.path
    return urlunsplit(split._replace(path=path, query=query))
