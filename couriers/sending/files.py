"""The files of a message: which of them can be sent, which go together in Telegram (C-44), and their content.

`MessageFiles` reads the file of an attachment, of this machine or by its address, for couriers that transfer files
themselves.
`UploadedFiles` puts uploaded files on the disk of this machine while parcels need them, so that couriers see only
paths.

Guarantees: no more bytes than the limit are read or kept, no download takes longer than a minute, and no connection is
opened to an address that is not public, unless that is allowed. Each redirect meets the same checks.
"""

import asyncio
import mimetypes
import os
import shutil
import tempfile
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import aiohttp
from msgspec.structs import replace

from core.errors import StoreError, StoreUnavailable
from core.model.content import Attachment, AttachmentType, Content
from core.model.public_addresses import guarded_socket, plain_socket
from core.model.user_files import has_no_link, safe_name
from core.uploads import Uploads

TIME_LIMIT = timedelta(minutes=1)
_MOST_REDIRECTS = 3
_UNKNOWN_TYPE = "application/octet-stream"

_KEPT = 1000
_PREFIX = "ada-files-"

_Key = tuple[str, str]
"""Tenant and id of an uploaded file."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """`media_type`: such as image/png; "application/octet-stream" if it is not known."""

    name: str
    media_type: str
    data: bytes


class FileNotLoaded(Exception):
    """The file is too large, is not there, or cannot be downloaded. The text has the reason and no address."""


class MessageFiles:
    """One per courier. `most_bytes`: of one file. `close` it at the end."""

    def __init__(self, most_bytes: int, *, allow_private: bool = False) -> None:
        self.most_bytes = most_bytes
        self._make_socket = plain_socket if allow_private else guarded_socket
        self._time_limit = aiohttp.ClientTimeout(total=TIME_LIMIT.total_seconds())
        self._session: aiohttp.ClientSession | None = None

    async def load(self, attachment: Attachment) -> LoadedFile:
        """Read a file that has a path or an address. Raises FileNotLoaded."""
        if attachment.path:
            return await asyncio.to_thread(self._read, Path(attachment.path))
        if attachment.url:
            return await self._download(attachment.url)
        raise FileNotLoaded("it is a file of another channel")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _read(self, path: Path) -> LoadedFile:
        if not has_no_link(path) or not path.is_file():
            raise FileNotLoaded("there is no such file")
        try:
            with path.open("rb") as file:
                data = file.read(self.most_bytes + 1)
        except OSError as error:
            raise FileNotLoaded(f"it cannot be read ({type(error).__name__})") from None
        self._check_size(len(data))
        return LoadedFile(safe_name(path.name), _type_of(path.name), data)

    async def _download(self, url: str) -> LoadedFile:
        try:
            async with self._open().get(url, max_redirects=_MOST_REDIRECTS) as response:
                if response.status != 200:
                    raise FileNotLoaded(f"its server answers {response.status}")
                data = await self._body(response)
                kind = response.content_type
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FileNotLoaded(f"it cannot be downloaded ({type(error).__name__})") from None
        name = file_name(url)
        return LoadedFile(name, kind if kind != _UNKNOWN_TYPE else _type_of(name), data)

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        self._check_size(response.content_length or 0)
        body = bytearray()
        async for chunk in response.content.iter_chunked(2**16):
            body += chunk
            self._check_size(len(body))
        return bytes(body)

    def _check_size(self, size: int) -> None:
        if size > self.most_bytes:
            raise FileNotLoaded(f"it has more than {self.most_bytes // 2**20} MB")

    def _open(self) -> aiohttp.ClientSession:
        """Return the session, made at the first download: it belongs to the running event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(socket_factory=self._make_socket),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=self._time_limit,
                headers={"User-Agent": "Ada/1"},
            )
        return self._session


def file_name(url: str) -> str:
    """Return the last part of an address's path; "file" if it has none."""
    name = ""
    with suppress(ValueError):
        name = PurePosixPath(unquote(urlsplit(url).path)).name
    return safe_name(name)


def label_of(attachment: Attachment) -> str:
    """Return how the history names a file that is not shown: its type, and its name if it has one."""
    return f"{attachment.type} {name_of(attachment)}".rstrip()


def name_of(attachment: Attachment) -> str:
    """Return the name of a file; "" if it has none."""
    return attachment.name or PurePath(attachment.path).name or (file_name(attachment.url) if attachment.url else "")


def _type_of(name: str) -> str:
    return mimetypes.guess_type(name)[0] or _UNKNOWN_TYPE


class Transfers(Generic[T]):
    """The newest transfers of a courier, by delivery and file."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, Attachment], asyncio.Task[T]] = OrderedDict()

    async def get(self, seed: str, attachment: Attachment, transfer: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of the transfer, which is made at the first call, and again if it raised."""
        key = seed, attachment
        if key not in self._known:
            self._known[key] = asyncio.create_task(transfer())
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        try:
            return await asyncio.shield(self._known[key])
        except asyncio.CancelledError:
            raise
        except BaseException:  # whatever the transfer raises: the next call makes it again
            self._known.pop(key, None)
            raise


MAX_GROUP = 10
_VISUAL = (AttachmentType.PHOTO, AttachmentType.VIDEO)
_IN_GROUPS = (*_VISUAL, AttachmentType.DOCUMENT)


class File(NamedTuple):
    """An attachment and its number in the message, from 0; the number is the same in each attempt."""

    number: int
    attachment: Attachment


def find_files(attachments: Sequence[Attachment], largest: int) -> tuple[list[File], list[str]]:
    """Return the attachments that can be sent, and what is missing because its file does not exist, cannot be read, or
    has more than `largest` bytes: "photo menu.png".
    """
    files = [File(number, one) for number, one in enumerate(attachments)]
    found = [file for file in files if _can_be_sent(file.attachment, largest)]
    return found, [label_of(file.attachment) for file in files if file not in found]


def _can_be_sent(attachment: Attachment, largest: int) -> bool:
    path = Path(attachment.path)
    return not attachment.path or (_is_readable(path) and path.stat().st_size <= largest)


def _is_readable(path: Path) -> bool:
    return has_no_link(path) and path.is_file() and os.access(path, os.R_OK)


def media_groups(files: Sequence[File]) -> list[Sequence[File]]:
    """Return the files of each message or group of messages: photos and videos in groups of at most 10, documents in
    such groups, and each of the others alone.
    """
    visual = [file for file in files if file.attachment.type in _VISUAL]
    documents = [file for file in files if file.attachment.type is AttachmentType.DOCUMENT]
    others = [file for file in files if file.attachment.type not in _IN_GROUPS]
    return [*_slices(visual), *_slices(documents), *([file] for file in others)]


def _slices(files: Sequence[File]) -> Iterator[Sequence[File]]:
    return (files[start : start + MAX_GROUP] for start in range(0, len(files), MAX_GROUP))


class UploadedFiles:
    """The uploaded files of a process. A file is there once, however many parcels need it, and is removed after the
    last of them. `close` it at the end; what a killed process has left is removed by the next one.
    """

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self._folder: Path | None = None
        self._users: Counter[_Key] = Counter()
        self._loads: dict[_Key, asyncio.Task[Path]] = {}

    @asynccontextmanager
    async def on_disk(self, tenant: str, content: Content | None) -> AsyncIterator[Content | None]:
        """Yield the content with paths in place of ids. A file that is gone has a path where nothing is, which
        couriers report as not shown. Raises StoreError.
        """
        keys = {(tenant, one.file) for one in content.attachments if one.file} if content else set()
        if content is None or not keys:
            yield content
            return
        self._users.update(keys)
        try:
            yield replace(content, attachments=[await self._with_path(tenant, one) for one in content.attachments])
        finally:
            self._users.subtract(keys)
            self._remove_unused(keys)

    async def _with_path(self, tenant: str, attachment: Attachment) -> Attachment:
        if not attachment.file:
            return attachment
        key = tenant, attachment.file
        if key not in self._loads:
            self._loads[key] = asyncio.create_task(self._load(*key, safe_name(attachment.name)))
        try:
            path = await asyncio.shield(self._loads[key])
        except StoreError:
            self._loads.pop(key, None)
            raise
        return Attachment(attachment.type, path=str(path), name=attachment.name)

    async def _load(self, tenant: str, upload_id: str, name: str) -> Path:
        """Load a file. The path is the same each time: some couriers remember by it what they have transferred."""
        try:
            path = self._root() / blake2b(f"{tenant}\0{upload_id}".encode(), digest_size=16).hexdigest() / name
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as file:
                is_there = await self._uploads.load(tenant, upload_id, file)
            if not is_there:
                path.unlink()
        except OSError as fault:
            raise StoreUnavailable(f"The file {name} cannot be written on this machine: {fault}") from None
        return path

    def _root(self) -> Path:
        """Return the folder, made at the first file. Its links are followed here: couriers refuse paths with links."""
        if self._folder is None:
            _remove_abandoned()
            self._folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")).resolve()
        return self._folder

    def _remove_unused(self, keys: set[_Key]) -> None:
        """Remove files without users. A file that is still being loaded stays until its next user, or the end of the
        process.
        """
        for key in keys:
            load = self._loads.get(key)
            if self._users[key] <= 0 and load and load.done():
                del self._users[key], self._loads[key]
                shutil.rmtree(load.result().parent, ignore_errors=True)

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _remove_abandoned() -> None:
    """Remove the folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        try:
            os.kill(int(folder.name.removeprefix(_PREFIX).partition("-")[0]), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except (OSError, ValueError):
            continue  # it runs as another user, or the folder is not ours
