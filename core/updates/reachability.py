"""Opting out of a channel (`User.opt_out`) by stopping its bot or writing STOP, and in again by starting it or START.

So a sender learns before sending that the person cannot be reached there. A person with several addresses in the
channel is not changed: another one may work.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from core.directory import Directory
from core.errors import Refused
from core.model.people import User, UserChange

log = logging.getLogger(__name__)


_STOP, _START = frozenset({"stop", "стоп"}), frozenset({"start", "старт", "/start"})


class Reach(NamedTuple):
    """A change of whether an address can be written to, as an update reports it."""

    address: str
    can_be_reached: bool


ReadReach = Callable[[Mapping[str, Any]], Reach | None]
"""Reads an update; returns None if it does not report it. Never raises."""


class Reachability:
    """In one channel of one tenant."""

    def __init__(self, directory: Directory, tenant: str, channel: str, read: ReadReach) -> None:
        self._directory = directory
        self._tenant = tenant
        self._channel = channel
        self._read = read

    async def note(self, raw: Mapping[str, Any]) -> None:
        """Change the person whose address it is, if the directory has one. A repeat changes nothing. Raises
        StoreError.
        """
        reach = self._read(raw)
        if reach is None:
            return
        user = await self._directory.users.by_contact(self._tenant, self._channel, reach.address)
        if user is None or len(user.contacts.get(self._channel, ())) > 1:
            return
        others = [one for one in user.opt_out if one != self._channel]
        wanted = others if reach.can_be_reached else [*others, self._channel]
        if set(wanted) == set(user.opt_out):
            return
        try:
            await self._directory.users.update(self._tenant, user.id, UserChange(opt_out=wanted))
        except Refused as refusal:
            log.warning("%s: that %s can be reached is not noted: %s", self._channel, reach.address, refusal)


class OptOuts:
    """Words by which a person ends the messages of a channel (STOP) and gets them again (START). One per tenant."""

    def __init__(self, directory: Directory, tenant: str) -> None:
        self._directory = directory
        self._tenant = tenant

    async def is_asked(self, channel: str, address: str, text: str) -> bool:
        """Return whether a text as a whole is STOP, or START of somebody who gets no messages in the channel. Of people
        whom the directory does not know it is a text like any other. Raises StoreError.
        """
        wanted = _wanted(text)
        user = None if wanted is None else await self._directory.users.by_contact(self._tenant, channel, address)
        return user is not None and not (wanted and channel not in user.opt_out)

    async def asked(self, channel: str, address: str, text: str) -> tuple[User, bool] | None:
        """Return who asks for a change, and whether for messages; None if nothing would change. Raises StoreError."""
        if (wanted := _wanted(text)) is None:
            return None
        user = await self._directory.users.by_contact(self._tenant, channel, address)
        return (user, wanted) if user and wanted == (channel in user.opt_out) else None

    async def change(self, user: User, channel: str, gets_messages: bool) -> None:
        """Let a person get messages of a channel, or none. Raises StoreError, Refused."""
        others = [one for one in user.opt_out if one != channel]
        change = UserChange(opt_out=others if gets_messages else [*others, channel])
        await self._directory.users.update(self._tenant, user.id, change)


def _wanted(text: str) -> bool | None:
    """Return whether a text asks for messages, None if it is about something else."""
    word = text.strip().rstrip(".!").casefold()
    return word in _START if word in _STOP | _START else None
