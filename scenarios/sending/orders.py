"""Makes the order of a `send`: to the event's person, or a broadcast with `to`.

A message to the person counts towards no quota and is not moved out of quiet hours, because the person writes at this
moment; a message that was not sent within an hour is given up. A broadcast follows the rules of the installation: its
sender is the person if the directory knows it, otherwise the bot.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from core.errors import Invalid
from core.model.clock import from_ms, is_skipped
from core.model.content import Content
from core.model.delivery import NewDelivery, Recipient, Sender
from core.model.text.characters import nfc
from core.orders import Caller, Order
from core.queue import own_name
from core.updates.rights import origin_of
from scenarios.bot.durations import read_duration
from scenarios.context import Context
from scenarios.placeholders.values import as_moment, in_utc
from scenarios.sending.addressees import addressees
from scenarios.sending.content import needed

KIND = "reply"
"""The kind of messages to the event's person; the same as that of the other bots."""

_BOT = Sender("bot")
_EXPIRES = timedelta(hours=1)
_PRIORITY = 1


def to_person(context: Context, text: str, content: Content, address: str) -> tuple[Order, Caller]:
    """Return a message to the event's chat, or to the person in private. The messages of a chat keep their order."""
    deliver_at = due(context)
    delivery = NewDelivery(
        tenant=context.services.tenant,
        sender=_BOT,
        text=text,
        recipients=(),
        channels=[context.channel],
        origin=origin_of(context.event),
        deliver_at=deliver_at,
        expires_at=(deliver_at or _now(context)) + _EXPIRES,
        lane=own_name(context.services.tenant, f"{context.channel}:{address}"),
        priority=_PRIORITY,
        kind=KIND,
        tags=tags(context),
        content=needed(content, text),
    )
    name = str(context.event.get("first_name") or context.event.get("username") or "") or None
    recipient = Recipient(address, name, contacts={context.channel: [address]})
    order = Order(delivery, [recipient], urgent=True, far=_is_far(context))
    return order, Caller(delivery.tenant, is_admin=True, may_be_urgent=True)


async def broadcast(context: Context, text: str, content: Content, to: Any) -> tuple[Order, Caller]:
    """Return a message to other people. Raises Invalid."""
    services = context.services
    written = context.prepared.own.get("channels")
    delivery = NewDelivery(
        tenant=services.tenant,
        sender=await _sender(context),
        text=text,
        recipients=(),
        channels=_texts(written) or (await services.core.channels.current()).names,
        origin=origin_of(context.event),
        deliver_at=due(context),
        tags=tags(context),
        content=needed(content, text),
    )
    return Order(delivery, addressees(to), far=_is_far(context)), Caller(delivery.tenant)


async def _sender(context: Context) -> Sender:
    """Return the person of the event as the directory knows it, with the quota and the groups of its role; or the
    bot."""
    services = context.services
    address = str(context.event.get("user_id") or "")
    user = (
        await services.core.directory.users.by_contact(services.tenant, context.channel, address) if address else None
    )
    return Sender(user.id, user.name) if user else _BOT


def due(context: Context) -> datetime | None:
    """Return the moment of `deliver_at` or after `delay`, in UTC; None: at once. A time without a zone is the
    installation's; if the clock is put forward over it, the next minute, with a warning.

    Raises Invalid DELAY_MALFORMED, TIME_MALFORMED.
    """
    own = context.prepared.own
    if own.get("delay") not in (None, ""):
        delay = read_duration(own["delay"])
        if delay is None:
            raise Invalid("DELAY_MALFORMED", f"{own['delay']!r} is no duration, for example 1d 2h.", "delay")
        return _now(context) + delay
    if own.get("deliver_at") in (None, ""):
        return None
    zone = context.services.timezone
    moment = in_utc(own["deliver_at"], zone, _now(context))
    if moment is None:
        raise Invalid(
            "TIME_MALFORMED", f"{own['deliver_at']!r} is no moment, for example 2026-11-22T10:00.", "deliver_at"
        )
    if (written := as_moment(own["deliver_at"], zone)) and not written.tzinfo and is_skipped(written, zone):
        context.warn(f"deliver_at: the clock is put forward over {written:%d.%m.%Y %H:%M}; the next minute is taken")
    return moment


def _is_far(context: Context) -> bool:
    return bool(context.prepared.own.get("far"))


def _now(context: Context) -> datetime:
    """Return the time of the server."""
    return from_ms(context.services.now_ms())


def tags(context: Context) -> Sequence[str]:
    """Return the author's tag, and the same for this person alone, by which the action `cancel` finds the delivery."""
    tag = context.prepared.own.get("tag")
    return () if tag in (None, "") else (_line(tag), personal_tag(context.event, tag))


def personal_tag(event: Mapping[str, Any], tag: Any) -> str:
    """Return the tag of this person's deliveries under `tag`."""
    return _line(f"{event['channel']}:{event.get('user_id')}:{tag}")


def _line(text: Any) -> str:
    return " ".join(nfc(str(text)).split())


def _texts(written: Any) -> list[str]:
    listed = written if isinstance(written, list | tuple) else [written]
    return [str(one) for one in listed if one not in (None, "")]
