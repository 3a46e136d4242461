"""The own fields of a tenant's people that have a type (D-46)."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from core.directory.csv_cells import listed
from core.directory.records import PAGE, Records, limit_reached, pages_of_ids
from core.errors import Conflict, NotFound, raise_first
from core.model.json_form import compact_json
from core.model.own_fields import (
    FieldCondition,
    OwnField,
    OwnFieldsByName,
    as_data,
    faults_of_field,
    read_condition,
    typed_fields,
)
from core.model.people import MAX_FIELDS, User, canonical_fields
from core.model.text.personal import field_name

_NAMED = 10
"""The number of people that an error lists."""

_decode = msgspec.json.Decoder(OwnField).decode


class OwnFields:
    """The types of own fields, by tenant. They are few, so they are read anew each time."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def all(self, tenant: str) -> OwnFieldsByName:
        """Return the fields that have a type, by name and in the order of their names."""
        found = await self._records.store.command("HVALS", self._key(tenant))
        return {one.name: one for one in sorted(map(_decode, found), key=lambda one: one.name)}

    async def define(self, tenant: str, field: OwnField) -> OwnField:
        """Give a field a type, or another one; return it with its name in the form in which names are compared. A value
        that somebody writes at the same moment may have another type: it stays text.

        Raises Invalid FIELD_MALFORMED, CHOICES_WRONG, Conflict LIMIT_REACHED, FIELD_VALUES_DIFFER (people have values
        of another type).
        """
        raise_first(faults_of_field(field))
        defined = replace(field, name=field_name(field.name))
        known = await self.all(tenant)
        if defined.name not in known and len(known) >= MAX_FIELDS:
            raise limit_reached(f"At most {MAX_FIELDS} fields have a type.")
        await self._check_people(tenant, defined)
        await self._records.store.write("HSET", self._key(tenant), defined.name, compact_json(defined))
        return defined

    async def undefine(self, tenant: str, name: str) -> None:
        """Take the type away: the field is text again, and its values stay. Raises NotFound FIELD_NOT_FOUND."""
        if not await self._records.store.write("HDEL", self._key(tenant), field_name(name)):
            raise NotFound("FIELD_NOT_FOUND", f"There is no field {name!r} with a type.", about=name)

    async def typed(self, tenant: str, values: Mapping[str, str]) -> Mapping[str, str]:
        """Return the own fields of a person in the forms of their types. Raises Invalid FIELD_VALUE_WRONG."""
        values = canonical_fields(values)
        found, faults = typed_fields(await self.all(tenant), values) if values else (values, [])
        raise_first(faults)
        return found

    async def data(self, tenant: str, values: Mapping[str, str]) -> dict[str, str | int | float]:
        """Return the own fields of a person for placeholders: numbers as such."""
        fields = await self.all(tenant) if values else {}
        return {name: as_data(fields.get(name), value) for name, value in values.items()}

    async def conditions(self, tenant: str, written: str, path: str) -> Sequence[FieldCondition]:
        """Read conditions that are separated by semicolons, as items of a cell. Raises Invalid CONDITION_MALFORMED,
        FIELD_VALUE_WRONG.
        """
        fields = await self.all(tenant)
        return [read_condition(fields, one, path) for one in listed(written)]

    async def _check_people(self, tenant: str, field: OwnField) -> None:
        store = self._records.store
        wrong: list[str] = []
        async for page in pages_of_ids(store, store.tenant_key("userids", tenant), "", PAGE):
            for user in await self._records.values(tenant, User, page):
                value = user.fields.get(field.name, "") if user else ""
                if user and typed_fields({field.name: field}, {field.name: value})[1]:
                    wrong.append(f"{user.id}: {value[:100]!r}")
        if wrong:
            more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
            detail = f"People have other values: {', '.join(wrong[:_NAMED])}{more}. Change them first."
            raise Conflict("FIELD_VALUES_DIFFER", detail, "type")

    def _key(self, tenant: str) -> str:
        return self._records.store.tenant_key("own_fields", tenant)
