"""The directory of a played bot: who writes is one of its staff, and each group that the bot names has one member."""

from collections.abc import Mapping
from contextlib import suppress
from zlib import crc32

from core.directory import Directory
from core.errors import Conflict
from core.model.contacts.addresses import EMAIL_ADDRESS, PHONE_NUMBER, address_form, channel_of_form
from core.model.people import Group, ObjectKind, Supergroup, User, UserChange, fault_of_address
from core.sentence import LANGUAGES
from couriers.channel import channels
from scenarios.bot import Bot
from scenarios.bot.data import Data
from scenarios.bot.event_fields import Event
from scenarios.placeholders.values import as_list

_OWNED = ("A-1", "A-2")
_OWNED_TOGETHER = "A"
"""The groups and the supergroup to which a person may write."""

_NUMBERS = 10**7


class PlayedDirectory:
    """The groups that a schedule of the `bot` is for have everybody who writes to it."""

    def __init__(self, directory: Directory, tenant: str, bot: Bot) -> None:
        self._directory = directory
        self._tenant = tenant
        self._language = bot.language
        targets = [one.target for one in bot.schedules.values()]
        self._staff_groups = [str(one["group"]) for one in targets if isinstance(one, Mapping) and one.get("group")]
        self._known: dict[str, Mapping[str, Data]] = {}

    async def meet(self, person: str, event: Event) -> Event:
        """Store a person whose event this is, with what the event says of it. Return the event as it comes to a bot: a
        person whose `directory_id` is empty is in no directory, and its event has no such field.
        """
        if event.get("directory_id") == "":
            if self._known.pop(person, None) is not None:
                await self._directory.users.delete(self._tenant, person)
            return {name: value for name, value in event.items() if name != "directory_id"}
        await self._store_person(person, event)
        return event

    async def _store_person(self, person: str, event: Event) -> None:
        said = {name: event.get(name) for name in ("directory_role", "directory_name", "language", "language_code")}
        if person not in self._known:
            await self._create(person, str(event["channel"]))
        else:
            channel = str(event["channel"])
            await self._directory.users.add_contact(self._tenant, person, channel, address_of(channel, person))
        if self._known.get(person) != said:
            self._known[person] = said
            await self._directory.users.update(self._tenant, person, _change(said, self._language))

    async def ensure(self, to: Data, channel: str, person: str) -> None:
        """Have the groups and people exist that a message names, and let a person write to them."""
        for one in as_list(to):
            text = str(one)
            named = one if isinstance(one, Mapping) else dict([text.split(":", 1)]) if ":" in text else {}
            if group := named.get("group"):
                await self.ensure_group(str(group))
                await self._own(channel, person, "group", str(group))
            elif supergroup := named.get("supergroup"):
                await self._ensure_supergroup(str(supergroup), [group := f"{supergroup}-1"])
                await self._own(channel, person, "group", group)
                await self._own(channel, person, "supergroup", str(supergroup))
            elif named.get("id") and not named.get("contacts"):
                await self._member(str(named["id"]))

    async def _own(self, channel: str, person: str, kind: ObjectKind, name: str) -> None:
        if user := await self._directory.users.by_contact(self._tenant, channel, person):
            await self._directory.ownerships.own(self._tenant, user.id, kind, name)

    async def ensure_group(self, group: str) -> None:
        with suppress(Conflict):
            await self._directory.groups.create(self._tenant, Group(group, group))
            await self._directory.groups.add_member(self._tenant, group, await self._member(f"member of {group}"))

    async def _ensure_supergroup(self, supergroup: str, groups: list[str]) -> None:
        for group in groups:
            await self.ensure_group(group)
        with suppress(Conflict):
            await self._directory.supergroups.create(self._tenant, Supergroup(supergroup, supergroup), groups)

    async def _create(self, person: str, channel: str) -> None:
        names = {channel_of_form(PHONE_NUMBER), channel_of_form(EMAIL_ADDRESS), channel}
        contacts = {name: [address_of(name, person)] for name in names}
        await self._directory.users.create(self._tenant, User(person, contacts=contacts))
        await self._ensure_supergroup(_OWNED_TOGETHER, list(_OWNED))
        for group in _OWNED:
            await self._directory.ownerships.own(self._tenant, person, "group", group)
        await self._directory.ownerships.own(self._tenant, person, "supergroup", _OWNED_TOGETHER)
        for group in self._staff_groups:
            with suppress(Conflict):
                await self._directory.groups.create(self._tenant, Group(group, group))
            await self._directory.groups.add_member(self._tenant, group, person)

    async def _member(self, name: str) -> str:
        with suppress(Conflict):
            contacts = {one.name: [address_of(one.name, name)] for one in channels().values() if one.is_simulated}
            await self._directory.users.create(self._tenant, User(name, name, contacts=contacts))
        return name


def _change(said: Mapping[str, Data], by_default: str) -> UserChange:
    language = str(said["language"] or said["language_code"] or "").partition("-")[0].lower()
    return UserChange(
        name=str(said["directory_name"] or "Anna"),
        role=str(said["directory_role"] or "trainer"),
        locale=language if language in LANGUAGES else by_default,
    )


def address_of(channel: str, person: str) -> str:
    """Return the address of a person in a channel: its name, if that can be one, otherwise a number or a mail address
    that is made of it.
    """
    if fault_of_address(channel, person) is None:
        return person
    number = int(person) % _NUMBERS if person.isdecimal() else crc32(person.encode()) % _NUMBERS
    form = address_form(channel)
    if form is PHONE_NUMBER:
        return f"+7999{number:07}"
    return f"{number}@example.org" if form is EMAIL_ADDRESS else str(number)
