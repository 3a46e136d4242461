"""Who stopped a bot and who started it again: a channel in which a person wants no messages (`User.opt_out`).

So a sender learns before sending that the person cannot be reached there. A person with several addresses in the
channel is not changed: another one may work.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from core.directory import Directory
from core.errors import Refused
from core.model.people import UserChange

log = logging.getLogger(__name__)


class Reach(NamedTuple):
    """Whether an address can be written to from now on, as an update reports it."""

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
