"""The directory of all tenants: one per process."""

from core.directory.expansion import Expanding
from core.directory.groups import Groups
from core.directory.ownerships import Ownerships
from core.directory.supergroups import Supergroups
from core.directory.users import Users


class Directory(Users, Groups, Supergroups, Ownerships, Expanding):
    """People, groups, supergroups, ownerships and their expansion. Every method takes the tenant first. Methods raise
    `core.errors.Refused`, with nothing written, and `StoreError`.
    """
