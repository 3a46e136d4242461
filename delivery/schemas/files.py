"""The types of uploaded files: query and response."""

from typing import Annotated

from msgspec import Meta, Struct

from core.model.content import AttachmentType
from core.uploads import Upload
from delivery.schemas.fields.timestamps import write_time
from delivery.schemas.requests import RequestModel


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
