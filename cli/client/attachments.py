"""The files of the commands `send` and `reply`: addresses, and files and tables of this machine, which are uploaded.

Couriers may run on other machines than the command, and send when the message is due, so they get what is uploaded.
"""

from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from cli.client.http_client import ClientUpload, HttpClient, JsonObject
from cli.command import WRONG_USAGE, CommandFailed
from core.model.content import TYPES_BY_ENDING, AttachmentType


async def attach(api: HttpClient, written: str) -> dict[str, str]:
    """Return the attachment of an address or of a path. Raises CommandFailed."""
    if written.startswith(("http://", "https://")):
        return {"type": _type_of(written), "url": written}
    stored = await _upload(api, "--file", written)
    return {"type": stored["type"], "file": stored["id"]}


async def upload_file(api: HttpClient, path: str) -> str:
    """Upload a file; return its id. Raises CommandFailed."""
    return str((await _upload(api, "--file", path))["id"])


async def upload_table(api: HttpClient, path: str) -> str:
    """Upload a table of recipients; return its id. Raises CommandFailed."""
    return str((await _upload(api, "--table", path))["id"])


def _type_of(address: str) -> str:
    return TYPES_BY_ENDING.get(PurePosixPath(urlsplit(address).path).suffix.lower(), AttachmentType.DOCUMENT)


async def _upload(api: HttpClient, option: str, written: str) -> JsonObject:
    """Upload a file of this machine. Raises CommandFailed, which names the option."""
    try:
        return await _upload_file(api, option, Path(written))
    except CommandFailed as refusal:
        raise CommandFailed(f"{option} {written}: {refusal}", refusal.code) from None


async def _upload_file(api: HttpClient, option: str, path: Path) -> JsonObject:
    try:
        with path.open("rb") as file:
            upload = ClientUpload(file, "application/octet-stream")
            stored = await api.upload("/v1/files", upload, {"name": path.name})
    except IsADirectoryError:
        raise CommandFailed(f"it is a folder; {option} takes one file", WRONG_USAGE) from None
    except OSError as fault:
        raise CommandFailed(f"the file cannot be read: {fault.strerror}", WRONG_USAGE) from None
    if "id" not in stored:
        raise CommandFailed(stored["detail"])
    return stored
