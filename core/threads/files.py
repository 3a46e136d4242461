"""The files of threads: fetched by the process that has the bot's token, stored without metadata, and kept for a while.

    a reply with files ─▶ ThreadFiles.fetch ─▶ tube `bot_files.<channel>` ─▶ the bot's process: `files_worker`
        ─▶ Uploads, `note` ─▶ the task of the reply is woken ─▶ ThreadFiles.fetched

Guarantees: a reply waits for its files in its lane, and not longer than `LONGEST`. A file is handed on only as it is in
`without_metadata`, under a name that its author has given it, or a name that says nothing.
"""

import asyncio
import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from core.deliveries.received import newest, note_newest
from core.errors import Invalid, NotFound, Refused
from core.model.clock import Backoff
from core.model.content import Attachment, AttachmentType
from core.model.json_form import compact_json
from core.queue import Attempt, NewTask, QueueClient, Result, Retry, Tube, Worker, own_name
from core.redis.keys import KEYS
from core.redis.store import Store
from core.threads.metadata import MetadataUnreadable, without_metadata
from core.updates.events import Event, person_of
from core.uploads import MiB, Uploads, not_found

MOST_BYTES = 20 * MiB
"""Of one file: more Telegram hands to no bot."""
LONGEST = timedelta(minutes=5)
"""Time for which a reply waits for its files; then it is passed on without them."""
KEPT = timedelta(days=30)

_BACKOFF = Backoff(timedelta(milliseconds=500), timedelta(seconds=20))
_LEASE = timedelta(seconds=5)
_CONCURRENCY = 2
"""Files in memory at the same time: each task loads one at a time."""

_TYPES = {one.value: one for one in AttachmentType} | {"video_note": AttachmentType.VIDEO}
_NAMES = {
    AttachmentType.PHOTO: "photo.jpg",
    AttachmentType.VIDEO: "video.mp4",
    AttachmentType.ANIMATION: "animation.mp4",
    AttachmentType.VOICE: "voice.ogg",
    AttachmentType.AUDIO: "audio.mp3",
    AttachmentType.DOCUMENT: "file",
}
"""The names of files that are handed on under no name of their own."""
_NAMED = frozenset({AttachmentType.DOCUMENT, AttachmentType.AUDIO})
"""The files to which people give names; those of others are of a camera or a program."""
_ENDINGS = {b"\x89PNG": ".png", b"RIFF": ".webp", b"GIF8": ".gif"}


class ReceivedFile(NamedTuple):
    """`name`: as its author has sent it, "" for none."""

    type: AttachmentType
    name: str
    data: bytes


class FilesUnavailable(Exception):
    """The provider cannot be reached now."""


Fetch = Callable[[Event, int], AsyncIterator[ReceivedFile]]
"""Emits the first files of a message that a person has written, at most as many; it leaves out what is gone, too large
or refused. Raises FilesUnavailable."""


class ThreadFile(Struct, frozen=True):
    """A file of a message. `id`: of the upload."""

    id: str
    type: AttachmentType
    name: str
    bytes: int

    @property
    def attachment(self) -> Attachment:
        return Attachment(self.type, file=self.id, name=self.name)


class FileFetch(Struct, frozen=True):
    """Files to fetch: the first `most` files of a message. `reply`: the name of the reply; `task`: waits."""

    event: dict[str, Any]
    most: int
    reply: str
    task: str


class ThreadFiles:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store, client: QueueClient, uploads: Uploads) -> None:
        self._store = store
        self._client = client
        self._uploads = uploads

    async def fetch(self, tenant: str, event: Event, most: int, reply: str, task: str) -> bool:
        """Have the bot's process fetch the first files of a message and wake a task then, once for each task. Returns
        False if no process of the channel fetches files.
        """
        tube = files_tube(str(event["channel"]))
        body = msgspec.json.encode(FileFetch(dict(event), most, reply, task)).decode()
        new = NewTask(body, tenant, user=person_of(event))
        try:
            await self._client.queue.put_once(tube, new, source=own_name(tenant, tube), name=task)
        except Refused:  # there is no such tube
            return False
        return True

    async def fetched(self, tenant: str, event: Event, reply: str) -> Sequence[ThreadFile] | None:
        """Return the files of a reply that are stored; None if they were not fetched."""
        stored = await newest(self._store, self._key(tenant, event), reply)
        return msgspec.json.decode(stored, type=list[ThreadFile]) if stored else None

    async def note(self, tenant: str, event: Event, reply: str, files: Sequence[ThreadFile]) -> None:
        await note_newest(self._store, self._key(tenant, event), f"{reply} {compact_json(files)}")

    async def store(self, tenant: str, file: ReceivedFile, reply: str) -> ThreadFile | None:
        """Store a file of a reply without its metadata; None if these cannot be taken out, or there is no room."""
        try:
            return await self._store_cleaned(tenant, file, reply)
        except (MetadataUnreadable, Refused):
            return None

    async def store_again(self, tenant: str, upload_id: str, thread: str) -> ThreadFile:
        """Store an uploaded file for a thread, without its metadata. Raises NotFound FILE_NOT_FOUND; Invalid
        FILE_NOT_PASSED_ON if it is too large, or a picture whose metadata cannot be taken out; Conflict FILES_FULL.
        """
        upload, target = await self._uploads.find(tenant, upload_id), io.BytesIO()
        if upload.bytes > MOST_BYTES:
            raise _not_passed_on(f"{upload.name} has more than {MOST_BYTES // MiB} MB.")
        if not await self._uploads.load(tenant, upload_id, target):
            raise not_found(upload_id)
        try:
            return await self._store_cleaned(tenant, ReceivedFile(upload.type, upload.name, target.getvalue()), thread)
        except MetadataUnreadable:
            raise _not_passed_on(f"{upload.name} may say who has made it, which cannot be taken out.") from None

    async def _store_cleaned(self, tenant: str, file: ReceivedFile, owner: str) -> ThreadFile:
        data = await asyncio.to_thread(without_metadata, file.data)
        stored = await self._uploads.store(tenant, _name(file), io.BytesIO(data), owner)
        await self._uploads.keep(tenant, [stored.id], datetime.now(UTC) + KEPT)
        return ThreadFile(stored.id, file.type, stored.name, stored.bytes)

    def _key(self, tenant: str, event: Event) -> str:
        place = tenant, str(event["channel"]), str(event["user_id"])
        return KEYS["fetched_files"].at(self._store.shard_of_person(*place), *place)


def files_tube(channel: str) -> str:
    return f"bot_files.{channel}"


async def open_files_tube(client: QueueClient, channel: str) -> None:
    """Create the tube of a channel whose bots fetch files. Raises StoreError."""
    await client.tubes.create(Tube(files_tube(channel), expires=LONGEST, attempts=100, backoff=_BACKOFF))


def files_worker(client: QueueClient, channel: str, fetchers: Mapping[str, Fetch], files: ThreadFiles) -> Worker:
    """Return a worker that fetches files for several bots, to `run()` and to `stop()`. `fetchers`: by tenant; they may
    change. Files of another tenant are left to another process.
    """

    async def handle(attempt: Attempt) -> Result:
        tenant, wanted = attempt.task.tenant, msgspec.json.decode(attempt.body, type=FileFetch)
        if (fetch := fetchers.get(tenant)) is None:
            return Retry()
        try:
            stored = [await files.store(tenant, one, wanted.reply) async for one in fetch(wanted.event, wanted.most)]
        except FilesUnavailable as fault:
            return Retry(error=str(fault))
        await files.note(tenant, wanted.event, wanted.reply, [one for one in stored if one])
        with suppress(NotFound):  # it has waited for too long
            await client.queue.wake(wanted.task)
        return None

    return client.worker(files_tube(channel), handle, _CONCURRENCY, lease=_LEASE)


def fetchable(event: Event) -> Sequence[Mapping[str, Any]]:
    """Return the attachments of an event that are files of the provider."""
    found = event.get("attachments") or ()
    return [one for one in found if one.get("file_id") and one["type"] in _TYPES]


def type_of(attachment: Mapping[str, Any]) -> AttachmentType:
    """Return how a file of `fetchable` is shown."""
    return _TYPES[attachment["type"]]


def typed_names(event: Event) -> str:
    """Return the names that the author of a message has given to its files, as words."""
    return as_words([str(one.get("file_name") or "") for one in fetchable(event) if type_of(one) in _NAMED])


def as_words(names: Sequence[str]) -> str:
    """Return the names of files in a form in which `typed_addresses` finds what is in them."""
    return "\n".join(name.replace("_", " ").removesuffix(PurePath(name).suffix) for name in names)


def _not_passed_on(detail: str) -> Invalid:
    return Invalid("FILE_NOT_PASSED_ON", detail, "files")


def _name(file: ReceivedFile) -> str:
    if file.type in _NAMED and file.name:
        return file.name
    usual = PurePath(_NAMES[file.type])
    return str(usual.with_suffix(_ENDINGS.get(file.data[:4], usual.suffix)))
