"""How an action type declares its fields: name, type, default, help. Once, in one place.

From a declaration come the check of an author's files, the JSON Schema for editors and the reference page. Neighbours:
`scenarios.actions` has one file per action type; `scenarios.check` uses the declarations.
"""

from scenarios.schema.declaration import ActionType, Field
from scenarios.schema.types import Type

__all__ = ["ActionType", "Field", "Type"]
