"""The files that the command `send` attaches. Pure.

The API takes a file by its address: couriers may run on other machines than the command, and fetch the file when the
message is due, so a path of this machine means nothing to them.
"""

from pathlib import PurePosixPath
from urllib.parse import urlsplit

from cli.command import WRONG_USAGE, CommandFailed
from core.model.content import TYPES_BY_ENDING, AttachmentType


def attachment(written: str) -> dict[str, str]:
    """Return the attachment of an address; its type follows from the ending. Raises CommandFailed."""
    if not written.startswith(("http://", "https://")):
        raise CommandFailed(
            f"--file {written}: a file is attached by its address, for example --file https://example.org/menu.pdf:"
            " couriers fetch it when the message is due, from wherever they run",
            WRONG_USAGE,
        )
    return {"type": _type_of(written), "url": written}


def _type_of(address: str) -> str:
    return TYPES_BY_ENDING.get(PurePosixPath(urlsplit(address).path).suffix.lower(), AttachmentType.DOCUMENT)
