"""Declarations of action types: each field once, with name, type, default and help.

From a declaration come the check of an author's files, the JSON Schema for editors, the reference page, and the struct
with which an action runs. Neighbours: `scenarios.actions` declares the action types; `scenarios.check` uses the
declarations.
"""

from scenarios.schema.attributes import Attributes, Own, Seen
from scenarios.schema.declaration import ActionType
from scenarios.schema.types import Type

__all__ = ["ActionType", "Attributes", "Own", "Seen", "Type"]
