"""The people in the answers to a delivery who are no recipients: members of group chats, children, the guardians
who have answered for them, and those that get nothing. Their names are in the directory only.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from core.deliveries.histories.recipient_search import RecipientFilter
from core.model.delivery import Uninformed
from core.model.history import RecipientRecord
from core.model.people import id_text
from core.model.question import Voice
from core.model.text.characters import folded
from delivery.http.context import ApiRequest


async def with_names(request: ApiRequest, records: Sequence[RecipientRecord]) -> Sequence[RecipientRecord]:
    """Return recipients with the names that the members of group chats, children and guardians have in the
    directory.
    """
    members = [id_text(one.id) for one in records if one.is_member]
    ids = list(dict.fromkeys([*members, *(voice.who for one in records for voice in _voices(one))]))
    users = await request.services.core.directory.users.lookup(request.tenant, ids) if ids else []
    names = {id_text(user.id): user.name for user in users if user}
    return [_named(one, names) for one in records]


def _voices(record: RecipientRecord) -> Sequence[Voice]:
    return record.answer.row.voices if record.answer and record.answer.row else ()


def _named(record: RecipientRecord, names: Mapping[str, str | None]) -> RecipientRecord:
    if record.is_member:
        record = replace(record, name=names.get(id_text(record.id)))
    if record.answer is None or record.answer.row is None or not record.answer.row.voices:
        return record
    row = record.answer.row
    voices = [replace(one, name=names.get(one.who)) for one in row.voices]
    return replace(record, answer=replace(record.answer, row=replace(row, voices=voices)))


async def with_names_of_uninformed(request: ApiRequest, found: Sequence[Uninformed]) -> Sequence[Uninformed]:
    """Return those that get nothing with their names in the directory."""
    ids = list(dict.fromkeys(one.who for one in found))
    users = await request.services.core.directory.users.lookup(request.tenant, ids) if ids else []
    names = {id_text(user.id): user.name for user in users if user}
    return [replace(one, name=names.get(one.who)) for one in found]


async def with_called(request: ApiRequest, wanted: RecipientFilter) -> RecipientFilter:
    """Return a filter that finds members of group chats by their names in the directory, too."""
    core = request.services.core
    if not (wanted.text and wanted.members):
        return wanted
    ids = await core.deliveries.recipients.member_ids(request.history_key, request.tenant)
    users = await core.directory.users.lookup(request.tenant, ids) if ids else []
    text = folded(wanted.text)
    called = frozenset(id_text(user.id) for user in users if user and text in folded(user.name or ""))
    return dataclasses.replace(wanted, called=called)
