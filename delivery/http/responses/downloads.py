"""A response of CSV, sent row by row as it is made, in the form of `core.directory.csv_cells`; the words
and times of the console in tables for people; and the content of an uploaded file.
"""

import csv
import functools
import io
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime, tzinfo
from importlib import resources
from typing import Annotated, Literal
from urllib.parse import quote

import msgspec
from aiohttp import hdrs, web
from msgspec import UNSET, Meta, UnsetType

from core.directory.csv_cells import escaped
from core.model.contacts.addresses import channel_titles
from core.uploads import not_found
from delivery.http.context import ApiRequest
from delivery.http.fields import RequestModel

CONTENT_TYPE = "text/csv"
_BYTE_ORDER_MARK = "\ufeff"
Rows = Sequence[Sequence[str]]

ForExcel = Annotated[
    Literal["", "1", "true", "0", "false"],
    Meta(description="semicolons and a byte order mark, for Excel in Russia; the name alone means true"),
]
RawFormat = Annotated[Literal["raw"], Meta(description="the form for programs, whatever language and excel say")]
_TIMES = {"ru": "%d.%m.%Y %H:%M", "en": "%Y-%m-%d %H:%M"}


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


@functools.cache
def console_words(language: str) -> Mapping[str, str | Mapping[str, str]]:
    """Return the words of the console, the names of channels among them."""
    folder = resources.files("delivery").joinpath("console/static/words")
    texts = [folder.joinpath(name).read_bytes() for name in (f"{language}.json", f"pages/{language}.json")]
    names = {f"channel.{name}": title for name, title in channel_titles(language).items()}
    return names | {
        key: text
        for one in texts
        for key, text in msgspec.json.decode(one, type=dict[str, str | dict[str, str]]).items()
    }


def console_word(table: str, value: str, language: str) -> str:
    return str(console_words(language).get(f"{table}.{value}", value.replace("_", " ")))


def local_time(at: datetime, zone: tzinfo, language: str) -> str:
    return f"{at.astimezone(zone):{_TIMES[language]}}"


OCTETS = "application/octet-stream"
IN_MEMORY = 2**20
"""Bytes; a larger file goes to the disk."""


async def send_content(request: ApiRequest, upload_id: str, name: str) -> web.StreamResponse:
    """Return the content of an uploaded file under a name, to be saved. Raises NotFound FILE_NOT_FOUND."""
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
        if not await request.services.uploads.load(request.tenant, upload_id, file):
            raise not_found(upload_id)
        file.seek(0)
        response = web.StreamResponse(headers=download_headers(name, OCTETS))
        await response.prepare(request.http)
        while piece := file.read(IN_MEMORY):
            await response.write(piece)
    await response.write_eof()
    return response
