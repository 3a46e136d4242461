"""Whether a sender may still write when its message is sent. An order is checked when it is made; while it waits for
its time, for a retry or for a reminder, its sender may be blocked, deleted, or lose a group or its role.

Called by `couriers.sending.parcel` before the first attempt of each claim.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from core.deliveries.histories.encoding import PAGE, StoredRecipient, load_recipients
from core.deliveries.histories.reader import HistoryReader
from core.directory import Directory
from core.directory.departed import DepartedPeople
from core.model.delivery import Bound, Sender
from core.model.history_key import HistoryKey
from core.model.people import User, id_text
from core.model.states import Reason
from core.orders.sending_policy import allowed_people, writes_to_all
from core.redis.store import Store


class SenderRights:
    """One per process. `open_to_staff`: the tenants in which staff writes to all. Methods raise StoreError."""

    def __init__(self, store: Store, open_to_staff: Collection[str] = ()) -> None:
        self._reader = HistoryReader(store)
        self._directory = Directory(store)
        self._departed = DepartedPeople(store)
        self._open_to_staff = open_to_staff

    async def refusals(self, key: HistoryKey, tenant: str, numbers: Collection[int]) -> Mapping[int, Reason]:
        """Return why the sender may not write to recipients of its delivery any more, by their numbers. A sender that
        the directory has never known may write to all.
        """
        (sender,) = await self._directory.users.lookup(tenant, [key.sender])
        if sender is None:
            heir = await self._departed.heir_of(tenant, key.sender)
            (sender,) = await self._directory.users.lookup(tenant, [heir]) if heir else (None,)
            if sender is None and heir is None:
                return {}
        if sender is None or sender.blocked:
            return dict.fromkeys(numbers, Reason.SENDER_BLOCKED)
        return await self._forbidden(key, tenant, sender, numbers)

    async def _forbidden(
        self, key: HistoryKey, tenant: str, sender: User, numbers: Collection[int]
    ) -> Mapping[int, Reason]:
        fields = await self._reader.read_fields(key, ("bound", "sender"))
        ordered_as = msgspec.json.decode(fields["sender"] or '{"id":""}', type=Sender)
        role = sender.role or ordered_as.role
        if not fields["bound"] or writes_to_all(role, tenant, self._open_to_staff):
            return {}
        allowed = None
        if fields["bound"] == Bound.PEOPLE:
            allowed = await allowed_people(self._directory, tenant, sender, self._open_to_staff)
        recipients = await self._recipients(key, numbers)
        owned = await self._owned(tenant, sender, {group for one in recipients for group in one.origin})
        forbidden = [one.number for one in recipients if not _is_allowed(one, owned, allowed)]
        return dict.fromkeys(forbidden, Reason.SENDER_NOT_ALLOWED)

    async def _owned(self, tenant: str, sender: User, groups: Collection[str]) -> Collection[str]:
        owns = self._directory.ownerships.owns
        return {group for group in groups if await owns(tenant, sender.id, "group", group)}

    async def _recipients(self, key: HistoryKey, numbers: Collection[int]) -> Sequence[StoredRecipient]:
        pages = sorted({number // PAGE for number in numbers})
        texts = await self._reader.read_fields(key, [f"people:{page}" for page in pages])
        found = [one for page in pages for one in load_recipients(texts[f"people:{page}"] or "[]", page)]
        return [one for one in found if one.number in numbers]


def _is_allowed(recipient: StoredRecipient, owned: Collection[str], allowed: Collection[str] | None) -> bool:
    """Return whether the sender owns a group through which a person was addressed, or may address it, or a child of
    whom it is a guardian, by its id. `allowed`: whom it may address so; None for all.
    """
    if any(group in owned for group in recipient.origin):
        return True
    about = [recipient.id, *(child.id for child in recipient.children)]
    return not recipient.origin if allowed is None else any(id_text(one) in allowed for one in about)
