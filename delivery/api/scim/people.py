"""People by SCIM. The person as the client has described it is kept in the record of the person (`User.scim`), so that
an operation changes in the directory only what it says, and takes away only contacts that SCIM has given.

    external ids of a person     SOURCE:externalId   SOURCE-name:userName        active
                                 SOURCE-left:externalId   SOURCE-name:userName   not active: blocked
                                 SOURCE-gone:externalId   SOURCE-name:userName   not active, and blocked before
                                 SOURCE-left:externalId                          deleted: blocked, no more seen
"""

import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from scim2_models import Context
from scim2_models.path import CompareOperator, Comparison, FilterNode

from core.directory.directory import Directory
from core.directory.records import user_not_found
from core.directory.syncs import SyncResult, is_in_another, owner_of, systems_of
from core.errors import Conflict, Forbidden, raise_first
from core.model.contacts.addresses import EMAIL_ADDRESS, PHONE_NUMBER, canonical, channel_of_form, malformed
from core.model.json_form import Json
from core.model.own_fields import OwnFieldsByName, typed_fields
from core.model.people import LOCALES, User, canonical_email, id_text
from core.model.text.characters import nfc
from delivery.api.scim.resources import (
    ScimAddress,
    ScimEnterprise,
    ScimPerson,
    ScimSearch,
    operations_of,
    patched,
    read,
    search_of,
)
from delivery.http.responses.problems import scim_refusal

_FIELDS = ("department", "timezone")
_MAILS = channel_of_form(EMAIL_ADDRESS)
_CHANNELS = (_MAILS, channel_of_form(PHONE_NUMBER))
COLUMNS = ("name", "email", "locale", *(f"fields.{one}" for one in _FIELDS), *(f"contacts.{one}" for one in _CHANNELS))
"""What SCIM says of a person, as columns of a file (`core.directory.importing.kinds`)."""
MOST_BYTES = 32_768
"""Of what a client says of a person: it is read with the person."""
_ADMIN = "admin"
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class ScimSource:
    """A client of SCIM: a source of people of a tenant, named as its key. `columns`: of all sources, by their names."""

    directory: Directory
    tenant: str
    name: str
    columns: Mapping[str, Sequence[str]]

    @property
    def left(self) -> str:
        return f"{self.name}-left"

    @property
    def gone(self) -> str:
        return f"{self.name}-gone"

    def system_of_leaver(self, user: User) -> str:
        """Return the system of the external id of a person that leaves, or has left."""
        return self.gone if user.blocked and self.left not in systems_of(user.external_ids) else self.left

    def known(self, user: User) -> ScimPerson | None:
        """Return a person as the client has described it; None if it does not see the person."""
        text = user.scim.get(self.name)
        resource = ScimPerson.model_validate_json(text) if text else None
        if resource:
            resource.id = id_text(user.id)
        return resource

    def resource_of(self, user: User) -> ScimPerson:
        """Return a person as the client has described it. Raises NotFound USER_NOT_FOUND for one it does not see."""
        if (resource := self.known(user)) is None:
            raise user_not_found(user.id)
        return resource

    async def people(self) -> AsyncIterator[User]:
        """Emit the people whom the client sees, by their ids."""
        cursor = None
        while True:
            page = await self.directory.users.page(self.tenant, cursor=cursor, limit=100)
            for user in page.items:
                if self.name in user.scim:
                    yield user
            if (cursor := page.next) is None:
                return

    async def report(
        self, *, created: int = 0, updated: int = 0, left: int = 0, refused: Conflict | None = None
    ) -> None:
        """Note a change, or why one was refused, for the page Synchronisation: a refusal stays there for a day."""
        syncs = self.directory.syncs
        last = next((one.last for one in await syncs.all(self.tenant) if one.source == self.name), None)
        if not refused and last and last.fault and last.ended > syncs.now() - _DAY_MS:
            return
        result = SyncResult("SCIM", created=created, updated=updated, left=left, columns=COLUMNS)
        if refused:
            result = replace(result, fault="leaving", detail=refused.detail[:512])
        await syncs.report(self.tenant, self.name, result)


class ScimPeople:
    """The people of a client of SCIM."""

    body_limit = MOST_BYTES

    def __init__(self, source: ScimSource) -> None:
        self._source, self._users = source, source.directory.users

    async def create(self, payload: Json) -> ScimPerson:
        """Add a person, or take over one who has left the source or has the same e-mail address; return the
        resource. Raises Invalid, Conflict, Forbidden SCIM_ADMINISTRATOR.
        """
        source, resource = self._source, read(ScimPerson, payload)
        resource.active = _is_active(resource)
        add, found = await self._addition(resource), await self._known_before(resource)
        if found is None:
            user = await self._users.create(source.tenant, add(User(f"p-{secrets.token_hex(6)}")))
        else:
            user = await self._users.revise(source.tenant, found.id, add)
        await source.report(created=1)
        return source.resource_of(user)

    async def replace(self, given: str, payload: Json) -> ScimPerson:
        """Replace what the client says of a person. An attribute that the body leaves out stays (RFC 7644, 3.5.1)."""
        sent = read(ScimPerson, payload, replaces=True)
        said = {name: getattr(sent, name) for name in sent.model_fields_set if name not in ("id", "meta", "schemas")}
        return await self._write(given, lambda before: before.model_copy(update=said))

    async def patch(self, given: str, payload: Json) -> ScimPerson:
        operations = list(operations_of(payload))
        return await self._write(given, lambda before: patched(ScimPerson, before, operations))

    async def delete(self, given: str) -> None:
        """Block a person, and show it to the client no more. Raises Conflict SYNC_HALVED."""
        user, before = await self.find(given)
        source = self._source
        if _is_active(before):
            await self._count_departure()

        def leave(old: User) -> User:
            own = [one for one in old.external_ids if not one.startswith((f"{source.name}-name:",))]
            kept = {name: text for name, text in old.scim.items() if name != source.name}
            blocked = old.blocked or not is_in_another(old.external_ids, source.name, source.columns.keys())
            external_ids = [_renamed(one, source.name, source.system_of_leaver(old)) for one in own]
            return replace(old, external_ids=external_ids, blocked=blocked, scim=kept)

        await self._users.revise(source.tenant, user.id, leave)
        await source.report(left=1)

    async def find(self, given: str) -> tuple[User, ScimPerson]:
        """Return a person and its resource. Raises NotFound USER_NOT_FOUND, also for people of other sources."""
        user = await self._users.find(self._source.tenant, given)
        return user, self._source.resource_of(user)

    def asked(self, query: Mapping[str, str]) -> ScimSearch[ScimPerson]:
        """Return the question of a query. Raises Invalid SCIM_FILTER_WRONG, SCIM_VALUE_WRONG."""
        return search_of(ScimPerson, query)

    async def search(self, condition: FilterNode | None) -> AsyncIterator[User]:
        """Emit people who may fit a condition: for the common ones only the one person."""
        if isinstance(condition, Comparison) and condition.op is CompareOperator.eq:
            wanted = await self._by_index(str(condition.attr_path).casefold(), str(condition.value))
            if wanted is not None:
                for user in wanted:
                    yield user
                return
        async for user in self._source.people():
            yield user

    async def resource_of(self, found: User, *, with_members: bool) -> ScimPerson:
        return self._source.resource_of(found)

    async def members_of(self, given: str) -> Sequence[User] | None:
        """Return None: a person has no members."""
        return None

    async def _by_index(self, attribute: str, value: str) -> list[User] | None:
        """Return the people with a value of an attribute that has an index; None for other attributes."""
        source, text = self._source, value.encode(errors="ignore").decode()  # no half of a surrogate pair
        external_ids = {
            "username": [f"{source.name}-name:{text.lower()}"],
            "externalid": [f"{system}:{text}" for system in (source.name, source.left, source.gone)],
        }.get(attribute)
        if external_ids is None:
            return None
        found = [await self._users.by_external_id(source.tenant, one) for one in external_ids]
        return [one for one in found if one and source.name in one.scim]

    async def _known_before(self, resource: ScimPerson) -> User | None:
        """Return the person that a new resource is about: it has left this source, or has the e-mail address. Raises
        Conflict EXTERNAL_ID_TAKEN if the client sees it already.
        """
        source = self._source
        ids = filter(None, (resource.external_id, resource.user_name))
        for one in (f"{system}:{own}" for own in ids for system in (source.left, source.gone)):
            if found := await self._users.by_external_id(source.tenant, one):
                break
        else:
            address = _columns(resource)["email"]
            found = await self._users.by_email(source.tenant, address) if address else None
        if found and source.name in found.scim:
            raise _taken(found)
        return found

    async def _write(self, given: str, changed: Callable[[ScimPerson], ScimPerson]) -> ScimPerson:
        source, (user, before) = self._source, await self.find(given)
        leaves = _is_active(before) and not _is_active(changed(before))
        if leaves:
            await self._count_departure()
        user = await self._users.revise(source.tenant, user.id, await self._change(changed))
        await source.report(updated=0 if leaves else 1, left=1 if leaves else 0)
        return source.resource_of(user)

    async def _count_departure(self) -> None:
        source = self._source

        async def count() -> int:
            return sum([1 async for user in source.people() if source.name in systems_of(user.external_ids)])

        try:
            await source.directory.syncs.count_departure(source.tenant, source.name, count)
        except Conflict as refused:
            await source.report(refused=refused)
            raise

    async def _addition(self, resource: ScimPerson) -> Callable[[User], User]:
        """Return the function that describes a person by a resource. It raises Conflict EXTERNAL_ID_TAKEN for a person
        whom the client sees already.
        """
        source = self._source
        own_fields = await source.directory.own_fields.all(source.tenant)

        def add(old: User) -> User:
            if source.known(old):
                raise _taken(old)
            return _Change(source, own_fields, None, resource).of(old)

        return add

    async def _change(self, changed: Callable[[ScimPerson], ScimPerson]) -> Callable[[User], User]:
        """Return the function that writes what `changed` makes of the description of a person into its record."""
        source = self._source
        own_fields = await source.directory.own_fields.all(source.tenant)

        def change(old: User) -> User:
            before = source.resource_of(old)
            return _Change(source, own_fields, before, changed(before)).of(old)

        return change


@dataclass(frozen=True)
class _Change:
    """The person after a new description. `before`: the one so far, None for a person new to the source."""

    source: ScimSource
    own_fields: OwnFieldsByName
    before: ScimPerson | None
    after: ScimPerson

    def of(self, old: User) -> User:
        """Return the person as it will be. Raises Invalid, Forbidden SCIM_ADMINISTRATOR."""
        new = replace(old, **self._columns(old), contacts=self._contacts(old))
        fields, faults = typed_fields(self.own_fields, new.fields)
        raise_first(faults)
        new = replace(new, fields=fields)
        if old.role == _ADMIN and (self.before is None or new != old):
            raise Forbidden("SCIM_ADMINISTRATOR", f"{old.id} is an administrator, whom SCIM may only block.")
        text = self.after.model_dump_json(scim_ctx=Context.DEFAULT, exclude={"id", "meta"})
        if len(text.encode()) > MOST_BYTES:
            raise scim_refusal("invalidValue", f"What is said of a person has at most {MOST_BYTES} bytes.")
        return replace(
            new,
            external_ids=self._external_ids(old),
            blocked=self._is_blocked(old),
            scim={**old.scim, self.source.name: text},
        )

    def _columns(self, old: User) -> dict[str, str | dict[str, str] | None]:
        """Return the fields of the person that the client has changed, and that no source before it says."""
        earlier = _columns(self.before) if self.before else dict[str, str | None]()
        fields = dict(old.fields)
        found: dict[str, str | dict[str, str] | None] = {"fields": fields}
        for column, value in _columns(self.after).items():
            if value == earlier.get(column) or self._has_another_owner(old, column):
                continue
            if column.startswith("fields."):
                fields[column.removeprefix("fields.")] = value or ""
            elif column != "locale" or value:
                found[column] = value
        return found

    def _has_another_owner(self, old: User, column: str) -> bool:
        now = old.fields.get(column.removeprefix("fields.")) if "." in column else getattr(old, column)
        return (
            bool(now) and owner_of(old.external_ids, column, self.source.name, self.source.columns) != self.source.name
        )

    def _contacts(self, old: User) -> dict[str, Sequence[str]]:
        """Return the contacts: those that the client has named before give way to those that it names now."""
        contacts = dict(old.contacts)
        for channel in _CHANNELS:
            gone = _addresses(self.before, channel) if self.before else ()
            kept = [one for one in old.contacts.get(channel, ()) if one not in gone]
            contacts[channel] = list(dict.fromkeys([*kept, *_addresses(self.after, channel)]))
        return {channel: some for channel, some in contacts.items() if some}

    def _external_ids(self, old: User) -> list[str]:
        """Return the external ids: those of this source in their place among the others."""
        source, after = self.source, self.after
        system = source.name if _is_active(after) else source.system_of_leaver(old)
        name = after.user_name or ""
        new = [f"{system}:{after.external_id or name}", f"{source.name}-name:{name.lower()}"]
        own = {source.name, source.left, source.gone, f"{source.name}-name"}
        first = next((n for n, one in enumerate(systems_of(old.external_ids)) if one in own), len(old.external_ids))
        others = [one for one in old.external_ids if one.partition(":")[0] not in own]
        return [*others[:first], *new, *others[first:]]

    def _is_blocked(self, old: User) -> bool:
        """Return whether the person is blocked: who is not active, unless another source has it; a block that the
        source has not made stays.
        """
        source = self.source
        if not _is_active(self.after):
            was_active = self.before is None or _is_active(self.before)
            is_kept = is_in_another(old.external_ids, source.name, source.columns.keys())
            return old.blocked or (was_active and not is_kept)
        return old.blocked and source.left not in systems_of(old.external_ids)


def _taken(user: User) -> Conflict:
    return Conflict("EXTERNAL_ID_TAKEN", f"This is the person {user.id}, who is here already.", "external_ids")


def _is_active(resource: ScimPerson) -> bool:
    return resource.active is not False


def _columns(resource: ScimPerson) -> dict[str, str | None]:
    """Return what a resource says of a person: column → value, None if it says nothing."""
    name = resource.name
    parts = [part for part in (name.family_name, name.given_name, name.middle_name) if part] if name else []
    mails = sorted(_with_value(resource.emails), key=lambda mail: not mail[1].primary)
    language = (resource.locale or resource.preferred_language or "")[:2].lower()
    extension = resource[ScimEnterprise]
    return {
        "name": resource.display_name or (name and name.formatted) or " ".join(parts) or None,
        "email": canonical_email(mails[0][0]) if mails else None,
        "locale": language if language in LOCALES else None,
        "fields.department": extension.department if extension else None,
        "fields.timezone": resource.timezone,
    }


def _addresses(resource: ScimPerson, channel: str) -> list[str]:
    """Return the addresses of a channel: all of e-mail; mobile numbers, and numbers without a type."""
    if channel == _MAILS:
        given = [value for value, _ in _with_value(resource.emails)]
    else:
        phones = _with_value(resource.phone_numbers)
        given = [value.removeprefix("tel:") for value, one in phones if (one.type or "mobile").lower() == "mobile"]
        given = [one for one in given if not malformed(channel, one)]
    return [canonical(channel, one) for one in given]


def _with_value(addresses: Sequence[ScimAddress] | None) -> list[tuple[str, ScimAddress]]:
    return [(one.value, one) for one in addresses or () if one.value]


def _renamed(external_id: str, system: str, new: str) -> str:
    own = external_id.partition(":")
    return nfc(f"{new}:{own[2]}") if own[0] == system else external_id
