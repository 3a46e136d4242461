"""The modifiers of placeholders, one function each. The page docs/scenarios-modifiers.md is made from their table.

A modifier returns the new value. It raises ModifierError if it cannot work on a value or with a parameter; then the
value stays as it is and the author gets a warning (C-56). Null and what is missing pass all modifiers unchanged, except
those that are about just that (`sees_null`). A new modifier is one function in a file here.
"""

from scenarios.placeholders.modifiers import conditions, dates, numbers, text
from scenarios.placeholders.modifiers.table import MODIFIERS, PARAMETER, Modifier, ModifierError

__all__ = [
    "MODIFIERS",
    "PARAMETER",
    "Modifier",
    "ModifierError",
    "conditions",
    "dates",
    "numbers",
    "text",
]
