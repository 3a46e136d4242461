"""The files that the command `send` attaches: addresses, and files of this machine, which are uploaded.

Couriers may run on other machines than the command, and send when the message is due, so they get what is uploaded.
"""

from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from cli.client.http_client import ClientUpload, HttpClient
from cli.command import WRONG_USAGE, CommandFailed
from core.model.content import TYPES_BY_ENDING, AttachmentType


async def attach(api: HttpClient, written: str) -> dict[str, str]:
    """Return the attachment of an address or of a path. Raises CommandFailed."""
    if written.startswith(("http://", "https://")):
        return {"type": _type_of(written), "url": written}
    try:
        return await _upload(api, Path(written))
    except CommandFailed as refusal:
        raise CommandFailed(f"--file {written}: {refusal}", refusal.code) from None


def _type_of(address: str) -> str:
    return TYPES_BY_ENDING.get(PurePosixPath(urlsplit(address).path).suffix.lower(), AttachmentType.DOCUMENT)


async def _upload(api: HttpClient, path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            upload = ClientUpload(file, "application/octet-stream")
            stored = await api.upload("/v1/files", upload, {"name": path.name})
    except IsADirectoryError:
        raise CommandFailed("it is a folder; --file takes one file, repeat it for several", WRONG_USAGE) from None
    except OSError as fault:
        raise CommandFailed(f"the file cannot be read: {fault.strerror}", WRONG_USAGE) from None
    if "id" not in stored:
        raise CommandFailed(stored["detail"])
    return {"type": stored["type"], "file": stored["id"]}
