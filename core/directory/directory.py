"""The directory of all tenants: one per process."""

from core.directory.collections import GROUPS, SUPERGROUPS, Collections
from core.directory.expander import Expander
from core.directory.ownerships import Ownerships
from core.directory.records import Records
from core.directory.users import Users
from core.redis.store import Store


class Directory:
    """People, groups, supergroups, ownerships and their expansion. Every method takes the tenant first. Methods raise
    `core.errors.Refused`, with nothing written, and `StoreError`.
    """

    def __init__(self, store: Store) -> None:
        self.records = Records(store)
        self.groups = Collections(self.records, GROUPS)
        self.supergroups = Collections(self.records, SUPERGROUPS)
        self.users = Users(self.records, self.groups)
        self.ownerships = Ownerships(self.records)
        self.expander = Expander(self.records, self.groups, self.supergroups)
