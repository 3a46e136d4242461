"""Who reads an inbox: its person, or the one into which that was merged; of an office its members, except students.
And the contacts over which threads reach people: of a reader, and of the person of a thread.
"""

from collections.abc import Mapping, Sequence

from core.deliveries.channels import Channels
from core.directory import Directory
from core.directory.offices import READING_ROLES, is_read, readers_of_office
from core.errors import Conflict, NotFound
from core.model.content import Feature
from core.model.history_key import Id
from core.model.people import User, id_text
from core.sentence import say
from core.threads.threads import OFFICE, USER, Inbox, ReplyRoute, Thread, Threads


class InboxReaders:
    """One per process. Methods raise StoreError."""

    def __init__(self, threads: Threads, directory: Directory) -> None:
        self._threads = threads
        self._directory = directory

    async def of(self, tenant: str, inbox: Inbox) -> Sequence[User]:
        """Return who reads an inbox, as far as the directory knows them: of an office its members, except students."""
        if inbox.kind == USER:
            owner = await self._owner_of(tenant, inbox)
            return [owner] if owner and not owner.blocked else []
        (group,) = await self._directory.groups.lookup(tenant, [inbox.id])
        return (await readers_of_office(self._directory, tenant, inbox.id) if group else None) or []

    async def reads(self, tenant: str, inbox: Inbox, user: User) -> bool:
        if not _may_read(inbox, user):
            return False
        if inbox.kind == OFFICE:
            return await self._directory.groups.has_member(tenant, inbox.id, user.id)
        owner = user if inbox.id == id_text(user.id) else await self._owner_of(tenant, inbox)
        return owner is not None and id_text(owner.id) == id_text(user.id)

    async def thread_of(self, tenant: str, thread: str, author: User | None) -> Thread | None:
        """Return the thread to which somebody writes; None if its inbox is gone. Raises NotFound THREAD_NOT_FOUND if
        its person is gone: an answer is meant for nobody else.
        """
        try:
            return await self._threads.find(tenant, thread)
        except NotFound:
            if author and thread not in await self._threads.of_person(tenant, author.id):
                raise
        return None

    async def is_abandoned(self, tenant: str, inbox: Inbox) -> bool:
        """Return whether nobody reads an inbox any more: its person was deleted or is blocked, its group is gone, or
        all its members are students or blocked. That of a person that the directory has never known, and of a group
        without members, is read by a program.
        """
        if inbox.kind == OFFICE:
            return not await is_read(self._directory, tenant, inbox.id)
        owner = await self._owner_of(tenant, inbox)
        return owner.blocked if owner else await self._threads.departed.heir_of(tenant, inbox.id) is not None

    async def _owner_of(self, tenant: str, inbox: Inbox) -> User | None:
        """Return the person of an inbox, or the one into which it was merged."""
        (user,) = await self._directory.users.lookup(tenant, [inbox.id])
        if user is None and (heir := await self._threads.departed.heir_of(tenant, inbox.id)):
            (user,) = await self._directory.users.lookup(tenant, [heir])
        return user

    async def inboxes_of(self, tenant: str, user: User) -> Sequence[Inbox]:
        """Return the inboxes that a person reads: its own, and of those of people who were merged into it and of its
        offices each that has got something.
        """
        own = Inbox(USER, id_text(user.id))
        inherited = [Inbox(USER, one) for one in await self._threads.departed.inherited(tenant, user.id)]
        groups = await self._directory.groups.with_member(tenant, user.id)
        offices = [one for group in groups if _may_read(one := Inbox(OFFICE, id_text(group.id)), user)]
        return [own, *[one for one in (*inherited, *offices) if await self._has_something(tenant, one, user)]]

    async def _has_something(self, tenant: str, inbox: Inbox, user: User) -> bool:
        return await self._threads.has_any(tenant, inbox) and await self.reads(tenant, inbox, user)

    async def name_of(self, tenant: str, reader: Id) -> str:
        """Return the name of a reader for colleagues."""
        (user,) = await self._directory.users.lookup(tenant, [reader])
        return (user.name if user else None) or str(reader)

    async def title_of(self, tenant: str, inbox: Inbox, locale: str | None) -> str:
        if inbox.kind == OFFICE:
            (group,) = await self._directory.groups.lookup(tenant, [inbox.id])
            return (group.title if group else None) or say("reply_office", locale)
        owner = await self._owner_of(tenant, inbox)
        return (owner.name if owner else None) or inbox.id


def _may_read(inbox: Inbox, user: User) -> bool:
    return inbox.kind == USER or user.role in READING_ROLES


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
        return {name: user.contacts[name] for name in names if name in user.contacts and user.accepts(name)}

    async def of_reader(self, tenant: str, reader: User) -> Mapping[str, Sequence[str]]:
        """Return the contacts by which a reader of an inbox can reply. Without one, its address of the directory is one
        for mails, unless that is a contact of another person. SMS are paid, so they carry nothing of a thread to it.
        """
        if (contacts := await self.of(reader)) or not reader.email:
            return contacts
        for mail in (await self._names())[1]:
            if reader.accepts(mail) and not await self._directory.users.by_contact(tenant, mail, reader.email):
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
        if owner and id_text(owner.id) == id_text(person.id) and owner.accepts(way.channel):
            return way
        if user:
            for channel, addresses in (await self.of(user)).items():
                return ReplyRoute(channel, addresses[0])
            if way.channel in user.contacts and user.accepts(way.channel):
                return ReplyRoute(way.channel, user.contacts[way.channel][0])
        raise Conflict("THREAD_UNREACHABLE", "This person has no contact by which it can be written to.")

    async def _names(self) -> tuple[list[str], list[str]]:
        """Return the channels whose messages can be replied to: of bots, and of mails."""
        displays = {one.name: one.display for one in await self._channels.views() if one.display}
        bots = [name for name, display in displays.items() if Feature.ANSWER in display.shows]
        return bots, [name for name, display in displays.items() if display.is_mailed and name not in bots]
