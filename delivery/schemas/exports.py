"""The types of the CSV exports: the query."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from delivery.schemas.requests import RequestModel


class ExportQuery(RequestModel, frozen=True):
    """The form of the file."""

    excel: (
        Annotated[
            Literal["", "1", "true", "0", "false"],
            Meta(description="semicolons and a byte order mark, for Excel in Russia; the name alone means true"),
        ]
        | UnsetType
    ) = UNSET

    @property
    def for_excel(self) -> bool:
        return self.excel in ("", "1", "true")
