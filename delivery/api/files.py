"""Files that deliveries attach, and tables of their recipients: upload, show, delete."""

import tempfile
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from core.model.clock import write_time
from core.model.content import AttachmentType
from core.model.field_types import Encoding
from core.orders import TableRef
from core.orders.recipient_tables import meanings
from core.uploads import Upload
from delivery.http.context import ApiRequest, Request, Response
from delivery.http.fields import RequestModel
from delivery.http.receiving import receive_file
from delivery.http.responses.downloads import IN_MEMORY, OCTETS
from delivery.http.route import NEW_OBJECT, People, PlainRequest, Repeats, Route, Routes


class FileQuery(RequestModel, frozen=True):
    """The name under which recipients get the file."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=255,
            description="with its ending, such as report.pdf; the answer has the name that recipients see: _ stands "
            "for quotation marks and slashes, … in a name of more than 240 bytes for what is left out",
        ),
    ]


class FileResponse(Struct):
    """An uploaded file. `type` and `id`: what an attachment of a delivery names, as `type` and `file`. It is removed at
    `expires_at`, unless a delivery names it before.
    """

    id: str
    name: str
    type: AttachmentType
    bytes: int
    expires_at: str

    @classmethod
    def of(cls, upload: Upload) -> "FileResponse":
        return cls(upload.id, upload.name, upload.type, upload.bytes, write_time(upload.expires_at))


async def upload(request: Request[None, FileQuery]) -> Response:
    """Store a file; the body is its content, of any type. A repeat returns the same id."""
    options = request.options
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
        await receive_file(request.http, options.file_limit, options.body_timeout, file)
        stored = await request.services.uploads.store(request.tenant, request.query.name, file)
    return Response(FileResponse.of(stored), 201, {"Location": f"/v1/files/{stored.id}"})


async def show(request: PlainRequest) -> Response:
    """Return the name, the size and the end of a file."""
    return Response(FileResponse.of(await request.services.uploads.find(request.tenant, _id(request))))


async def delete(request: PlainRequest) -> Response:
    """Remove a file at once."""
    await request.services.uploads.delete(request.tenant, _id(request))
    return Response(None, 204)


class TableQuery(RequestModel, frozen=True):
    """The sheet of a workbook, if several have values; the encoding of CSV, if it is not found out."""

    sheet: Annotated[str, Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    encoding: Encoding | UnsetType = UNSET


class TableColumn(Struct):
    """A column of a table. `field`: what `{{…}}` in a text names. `meaning`: how rows name their recipient: id, name,
    email, contacts.sms, …; null: it is a value alone.
    """

    name: str
    field: str
    meaning: str | None


class TableResponse(Struct):
    """A table of recipients. `rows`: how many it has."""

    columns: list[TableColumn]
    rows: int


async def show_table(request: Request[None, TableQuery]) -> Response:
    """Return the columns of an uploaded table, so that a text can name them."""
    query, file = request.query, _id(request)
    ref = TableRef(file, query.sheet or "", query.encoding or "")
    table = await request.services.core.sending.tables.read(request.tenant, ref)
    named = zip(table.header, table.fields, meanings(table), strict=True)
    return Response(TableResponse([TableColumn(*column) for column in named if column[0]], len(table.rows)))


def _id(request: ApiRequest) -> str:
    return request.part("id")


ROUTES: Routes = (
    Route("POST", "/v1/files", "Upload a file that deliveries attach by its id; the same file has the same id",
          "send", upload, 201, FileResponse, query=FileQuery, headers=NEW_OBJECT, upload=OCTETS,
          people=People.BY_SCOPE),
    Route("GET", "/v1/files/{id}", "Show an uploaded file", "send", show, 200, FileResponse),
    Route("GET", "/v1/files/{id}/table", "Read an uploaded CSV or .xlsx file as a table of recipients", "send",
          show_table, 200, TableResponse, query=TableQuery, people=People.BY_SCOPE),
    Route("DELETE", "/v1/files/{id}", "Delete an uploaded file; deliveries that name it are sent without it", "send",
          delete, 204, repeats=Repeats.STORED),
)  # fmt: skip
