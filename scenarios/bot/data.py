"""What authors write, events have and actions return: values as in YAML and JSON, moments, and what is missing."""

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
