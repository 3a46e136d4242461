"""Recipients of a message with `to` that only the bot knows: the person of the event, and all its people (C-106).

A person of the directory is one recipient, however many chats it has with the bot, and gets nothing where it has opted
out. Others are named by their chat, `telegram-bot:100001`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import groupby
from zlib import crc32

from core.model.delivery import Recipient
from core.orders.addressing import each_once
from core.orders.order import AnyAddressee
from core.orders.preparation import MAX_RECIPIENTS
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine.triggers import SCHEDULED
from scenarios.schema.conditions import unmet
from scenarios.sending.addressees import PERSON, addressees, listed, people_of
from scenarios.stores import step_results
from scenarios.stores.people import People
from scenarios.stores.variables import Variables

IN_DELIVERY = MAX_RECIPIENTS * 9 // 10
"""People of one delivery, on average: they are distributed by a hash, and no delivery may have more than the most."""
_AT_ONCE = 100


async def audience(context: Context, to: Data, channels: Sequence[str]) -> Sequence[AnyAddressee]:
    """Return the addressees of `to`. `channels`: in which people get it, "" for those of their chats with the bot.
    Raises Invalid RECIPIENT_MALFORMED, NOBODY_ADDRESSED.
    """
    found: list[AnyAddressee] = []
    for one in listed(to):
        if (people := people_of(one)) is not None:
            found += await _people(context, people, in_chats=not channels)
        elif one != PERSON:
            found += addressees(one)
        elif context.person not in ("", SCHEDULED):
            found.append(await _recipient(context, context.channel, context.person, in_chats=False))
    return found or addressees(None)


async def parts(context: Context, people: Sequence[AnyAddressee]) -> Sequence[Sequence[AnyAddressee]]:
    """Return the people of each delivery. A repeat after a crash has each person in the same one, although people may
    have come meanwhile.
    """
    if len(people) <= IN_DELIVERY:
        return [people]
    count = int(await step_results.remember(context, str(-(-len(people) // IN_DELIVERY))))
    numbered = sorted(((crc32(str(one.id).encode()) % count, n) for n, one in enumerate(people)))
    return [[people[n] for _, n in part] for _, part in groupby(numbered, key=lambda pair: pair[0])]


async def _people(context: Context, wanted: Mapping[str, Data], *, in_chats: bool) -> Sequence[Recipient]:
    """Return the people of the bot whose variables fulfil `when`, in the order of their names in the store."""
    chats = sorted([one async for one in People(context.services.core.store, context.services.tenant).all()])
    found: list[Recipient] = []
    for start in range(0, len(chats), _AT_ONCE):
        page = chats[start : start + _AT_ONCE]
        met = await asyncio.gather(*(_is_meant(context, wanted, *chat) for chat in page))
        meant = [chat for chat, is_meant in zip(page, met, strict=True) if is_meant]
        found += await asyncio.gather(*(_recipient(context, *chat, in_chats=in_chats) for chat in meant))
    return each_once(found)


async def _is_meant(context: Context, wanted: Mapping[str, Data], channel: str, person: str) -> bool:
    if not wanted.get("when"):
        return True
    services = context.services
    about = {"channel": channel, "user_id": person, "chat_id": person}
    seen = await Variables(services.core.store, services.tenant).seen(context.bot, about, services.now_ms())
    return not unmet(wanted["when"], seen)


async def _recipient(context: Context, channel: str, person: str, *, in_chats: bool) -> Recipient:
    """Return a person of the bot. `in_chats`: without the contacts that only the directory has."""
    services = context.services
    core, tenant = services.core, services.tenant
    user = await core.directory.users.by_contact(tenant, channel, person)
    if user is None:
        known = await People(core.store, tenant).find(channel, person)
        name = f"{known.first_name} {known.last_name}".strip() if known else ""
        return Recipient(f"{channel}:{person}", name or None, {channel: [person]})
    contacts = {channel: [person]} if in_chats else {**user.contacts, channel: user.contacts.get(channel) or [person]}
    left = tuple(contacts) if user.blocked else user.opt_out
    wanted = {name: addresses for name, addresses in contacts.items() if name not in left}
    return Recipient(user.id, user.name, wanted, opted_out=left, fields=user.fields, locale=user.locale)
