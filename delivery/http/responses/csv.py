"""A response of CSV, sent row by row as it is made, in the form of `core.directory.csv_cells`."""

import csv
import io
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Literal
from urllib.parse import quote

from aiohttp import hdrs, web
from msgspec import UNSET, Meta, UnsetType

from core.directory.csv_cells import escaped
from delivery.http.context import ApiRequest
from delivery.http.fields import RequestModel

CONTENT_TYPE = "text/csv"
_BYTE_ORDER_MARK = "\ufeff"
Rows = Sequence[Sequence[str]]


async def respond_csv(
    request: ApiRequest, name: str, pages: AsyncIterator[Rows], *, for_excel: bool
) -> web.StreamResponse:
    """Send the pages, of which the first one is there before the response begins: until then a refusal has a status.
    `name`: of the file. A fault in the middle breaks the response off, which a client notices.
    """
    first = await anext(pages)
    response = web.StreamResponse(headers=download_headers(name, f"{CONTENT_TYPE}; charset=utf-8; header=present"))
    await response.prepare(request.http)
    start = _BYTE_ORDER_MARK if for_excel else ""
    await response.write((start + csv_text(first, for_excel=for_excel)).encode())
    async for rows in pages:
        await response.write(csv_text(rows, for_excel=for_excel).encode())
    await response.write_eof()
    return response


def download_headers(name: str, content_type: str) -> dict[str, str]:
    """Return the headers of a file that browsers save and never show."""
    return {
        hdrs.CONTENT_TYPE: content_type,
        hdrs.X_CONTENT_TYPE_OPTIONS: "nosniff",
        hdrs.CONTENT_DISPOSITION: f"attachment; filename*=UTF-8''{quote(name)}",
        hdrs.CACHE_CONTROL: "no-store",
    }


def csv_text(rows: Rows, *, for_excel: bool) -> str:
    """Return rows of RFC 4180. `for_excel`: separated by semicolons, so that Excel in Russia opens them directly."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=";" if for_excel else ",")
    writer.writerows([escaped(cell) for cell in row] for row in rows)
    return text.getvalue()


ForExcel = Annotated[
    Literal["", "1", "true", "0", "false"],
    Meta(description="semicolons and a byte order mark, for Excel in Russia; the name alone means true"),
]


RawFormat = Annotated[Literal["raw"], Meta(description="the form for programs, whatever language and excel say")]


def is_for_excel(excel: str | UnsetType) -> bool:
    """Return whether a query asks for the form of Excel."""
    return excel in ("", "1", "true")


class ExportQuery(RequestModel, frozen=True):
    """The form of the file."""

    excel: ForExcel | UnsetType = UNSET
    format: RawFormat | UnsetType = UNSET

    @property
    def for_excel(self) -> bool:
        return not self.format and is_for_excel(self.excel)
