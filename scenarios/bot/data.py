"""Values of authors, events and actions: those of YAML and JSON, moments, and the missing value."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, final


@final
class Missing:
    """The value of a field that does not exist; unlike null."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()

Data = None | bool | int | float | str | date | Decimal | Missing | Sequence["Data"] | Mapping[str, "Data"]
