"""The members of group chats among the recipients of a delivery: their names are in the directory only."""

import dataclasses
from collections.abc import Sequence

from msgspec.structs import replace

from core.deliveries.histories.recipient_search import RecipientFilter
from core.model.history import RecipientRecord
from core.model.people import id_text
from core.model.text.characters import folded
from delivery.http.context import ApiRequest


async def with_names(request: ApiRequest, records: Sequence[RecipientRecord]) -> Sequence[RecipientRecord]:
    """Return recipients with the names that the members of group chats have in the directory."""
    ids = [one.id for one in records if one.is_member]
    users = await request.services.core.directory.users.lookup(request.tenant, ids) if ids else []
    names = {user.id: user.name for user in users if user}
    return [replace(one, name=names.get(one.id)) if one.is_member else one for one in records]


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
