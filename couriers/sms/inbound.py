"""SMS that a gateway has received: what it posts (Kannel's get-url), and the event of it. Pure."""

from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, Any
from urllib.parse import quote

from msgspec import Meta, Struct, field

from core.model.contacts.addresses import e164
from core.updates.events import Arrival
from couriers.sms import CHANNEL

ANSWER = ""
"""Kannel would send a text back."""
_SHORTEST_NUMBER = 8
"""Digits. A shorter one is a service; an answer to it could begin an endless exchange."""


class InboundSmsQuery(Struct, frozen=True):
    """An SMS that a gateway has received. Gateways add parameters of their own, so unknown ones are ignored."""

    secret: Annotated[str, Meta(min_length=1, max_length=1024, description="ADA_INBOUND_SMS_SECRET")]
    sender: Annotated[str, Meta(min_length=1, max_length=256, description="the number that wrote")] = field(name="from")
    text: Annotated[str, Meta(max_length=2**16)] = ""
    to: Annotated[str, Meta(max_length=256, description="the number that was written to")] = ""
    time: Annotated[str, Meta(max_length=64)] = ""
    id: Annotated[str, Meta(max_length=256, description="the gateway's id: a repeat has the same")] = ""
    smsc: Annotated[str, Meta(max_length=256)] = ""
    charset: Annotated[str, Meta(max_length=64, description="of the parameters")] = "UTF-8"


Fields = InboundSmsQuery


def get_url(api: str, secret: str) -> str:
    """Return the get-url of docs/connect-sms.md. A percent sign in the secret would be an escape of Kannel."""
    quoted = quote(secret, safe="").replace("%", "%%")
    return f"{api}/v1/inbound/sms?secret={quoted}&from=%p&to=%P&text=%b&time=%t&id=%I&smsc=%i&charset=%C"


def update_of(query: InboundSmsQuery) -> dict[str, str] | None:
    """Return the SMS for `couriers.sms`; None if the sender is no telephone, or the number that was written to, so
    that nothing answers itself.
    """
    number = _number(query.sender)
    if number is None or number == _number(query.to):
        return None
    return {"id": _sms_name(query, number), "number": number, "text": query.text}


def _number(written: str) -> str | None:
    """Return a number in E.164; gateways leave out the plus."""
    digits = written.strip()
    if not digits.isdecimal():
        return e164(digits)
    return e164(digits) or (e164(f"+{digits}") if len(digits) >= _SHORTEST_NUMBER else None)


def _sms_name(query: InboundSmsQuery, number: str) -> str:
    """Return what a repeat has in common with the first: the gateway's id, or else sender, receiver, time and text."""
    parts = (query.smsc, query.id) if query.id else (number, query.to, query.time, query.text)
    return blake2b("\n".join(parts).encode(errors="replace"), digest_size=16).hexdigest()


def read_arrival(sms: Mapping[str, Any], now: datetime) -> Arrival:
    """Return the event. Gateways write the time in many ways, so its time is `now`."""
    person = {"user_id": sms["number"], "is_bot": False, "chat_id": sms["number"], "chat_type": "private"}
    text = {"event_text": sms["text"], "event_date": now.isoformat(), "attachments": []}
    return Arrival({"id": sms["id"], "channel": CHANNEL, "kind": "text", **person, **text})
