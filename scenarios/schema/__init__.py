"""How an action type declares its fields: name, type, default, help. Once, in one place.

From a declaration come the check of an author's files, the JSON Schema for editors, the reference page, and the struct
with which an action runs. Neighbours:
`scenarios.actions` has one file per action type; `scenarios.check` uses the declarations.
"""

from scenarios.schema.attributes import Attributes, Own, Seen
from scenarios.schema.declaration import ActionType
from scenarios.schema.types import Type

__all__ = ["ActionType", "Attributes", "Own", "Seen", "Type"]
