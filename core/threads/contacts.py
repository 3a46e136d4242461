"""The contacts over which threads reach people: of a reader, and of the person of a thread."""

from collections.abc import Mapping, Sequence

from core.deliveries.channels import Channels
from core.directory import Directory
from core.errors import Conflict
from core.model.content import Feature
from core.model.people import User, id_text
from core.threads.threads import ReplyRoute, Thread


class ReplyContacts:
    """One per process. Methods raise StoreError."""

    def __init__(self, directory: Directory, channels: Channels) -> None:
        self._directory = directory
        self._channels = channels

    async def of(self, user: User) -> Mapping[str, Sequence[str]]:
        """Return the contacts of a person by which it can reply to a message: bots in the order of channels, then
        mail.
        """
        bots, mails = await self._names()
        names = [*bots, *mails]
        return {name: user.contacts[name] for name in names if name in user.contacts and name not in user.opt_out}

    async def of_reader(self, tenant: str, reader: User) -> Mapping[str, Sequence[str]]:
        """Return the contacts by which a reader of an inbox can reply. Without one, its address of the directory is one
        for mails, unless that is a contact of another person. SMS are paid, so they carry nothing of a thread to it.
        """
        if (contacts := await self.of(reader)) or not reader.email:
            return contacts
        for mail in (await self._names())[1]:
            if mail not in reader.opt_out and not await self._directory.users.by_contact(tenant, mail, reader.email):
                return {mail: [reader.email]}
        return {}

    async def way_to(self, thread: Thread) -> ReplyRoute:
        """Return the way to the person of a thread: the last one, if it still is the person's; else a contact by which
        it can reply, or another address in the same channel. Raises Conflict THREAD_UNREACHABLE.
        """
        way, person = thread.way, thread.person
        owner = await self._directory.users.by_contact(thread.tenant, way.channel, way.address)
        (user,) = await self._directory.users.lookup(thread.tenant, [person.id])
        if owner is None and user is None:
            return way
        if owner and id_text(owner.id) == id_text(person.id) and way.channel not in owner.opt_out:
            return way
        if user:
            for channel, addresses in (await self.of(user)).items():
                return ReplyRoute(channel, addresses[0])
            if way.channel in user.contacts and way.channel not in user.opt_out:
                return ReplyRoute(way.channel, user.contacts[way.channel][0])
        raise Conflict("THREAD_UNREACHABLE", "This person has no contact by which it can be written to.")

    async def _names(self) -> tuple[list[str], list[str]]:
        """Return the channels whose messages can be replied to: of bots, and of mails."""
        displays = {one.name: one.display for one in await self._channels.views() if one.display}
        bots = [name for name, display in displays.items() if Feature.ANSWER in display.shows]
        return bots, [name for name, display in displays.items() if display.is_mailed and name not in bots]
