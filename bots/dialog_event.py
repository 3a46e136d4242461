"""The fields of an event that a dialog reads, the same for all channels."""

from msgspec import Struct

from core.updates.events import Event
from couriers import telegram_bot


class DialogEvent(Struct, frozen=True):
    """One thing that a person did. Frozen.

    `id`: unique in the channel's bot or gateway. `address`: the person's address in the channel, as in a contact.
    `name`, `locale`: as the provider has them, "" if it does not. `text`: what was written. `button`: the data of a
    pressed button, then `message` is the id of the message with the button and `callback` that of the press.
    """

    id: str
    channel: str
    address: str
    name: str = ""
    locale: str = ""
    text: str = ""
    button: str = ""
    message: str = ""
    callback: str = ""


def dialog_event(event: Event) -> DialogEvent:
    """Return what a dialog reads of an event."""
    button = str(event.get("callback_data") or "")
    return DialogEvent(
        id=str(event["id"]),
        channel=str(event["channel"]),
        address=str(event["user_id"]),
        name=" ".join(filter(None, (_text(event, "first_name"), _text(event, "last_name")))),
        locale=_text(event, "language_code"),
        text="" if _is_caption(event) else _text(event, "event_text"),
        button=button,
        message=_text(event, "message_id") if button else "",
        callback=_text(event, "callback_id"),
    )


def as_event(event: DialogEvent) -> Event:
    """Return the words of a person as an event."""
    written = {"id": event.id, "channel": event.channel, "user_id": event.address, "event_text": event.text}
    return {**written, "language_code": event.locale}


def _text(event: Event, name: str) -> str:
    return str(event.get(name) or "")


def _is_caption(event: Event) -> bool:
    """Return whether the text belongs to a file, which a dialog cannot pass on. In VK it stands by itself."""
    return event["channel"] == telegram_bot.CHANNEL and bool(event.get("attachments"))
