"""The directory: people, groups, supergroups, and who may write to which of them.

Guarantees: every write is one Lua function of `lua/directory`, which checks first and then writes, so a refusal leaves
nothing behind. An e-mail address and a contact belong to one person of a tenant. The owner of a supergroup owns each
of its groups. Tenants see nothing of each other. Reading many people is paged: no call holds up the server.

Neighbours: `core.redis` (keys and functions), `core.model.people` (values and their rules). It knows nothing of
deliveries; `core.orders` combines both.
"""

from core.directory.directory import Directory
from core.directory.records import DirectoryPage

__all__ = ["Directory", "DirectoryPage"]
