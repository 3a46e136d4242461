"""The types of the CSV exports: the queries."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from delivery.schemas.requests import RecipientFilterQuery, RequestModel

ForExcel = Annotated[
    Literal["", "1", "true", "0", "false"],
    Meta(description="semicolons and a byte order mark, for Excel in Russia; the name alone means true"),
]
_YES = ("", "1", "true")


class ExportQuery(RequestModel, frozen=True):
    """The form of the file."""

    excel: ForExcel | UnsetType = UNSET

    @property
    def for_excel(self) -> bool:
        return self.excel in _YES


class OutcomeExportQuery(RecipientFilterQuery, frozen=True):
    """The form of the file, and which recipients."""

    excel: ForExcel | UnsetType = UNSET

    @property
    def for_excel(self) -> bool:
        return self.excel in _YES
