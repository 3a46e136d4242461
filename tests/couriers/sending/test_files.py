"""Attachments are read within limits, and from public addresses only."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO

import pytest

from core.errors import StoreUnavailable
from core.uploads import Uploads
from couriers.sending import (
    Attachment,
    AttachmentType,
    Content,
    FileNotLoaded,
    MessageFiles,
    file_name,
    find_files,
    label_of,
)
from couriers.sending.files import UploadedFiles
from tests.couriers.file_server import PICTURE, FileServer, file_server

PHOTO = AttachmentType.PHOTO


@pytest.fixture
async def server() -> AsyncIterator[FileServer]:
    async with file_server() as started:
        yield started


@pytest.fixture
async def files() -> AsyncIterator[MessageFiles]:
    opened = MessageFiles(2**20, allow_private=True)
    yield opened
    await opened.close()


async def test_a_file_of_this_machine_is_read_with_its_name_and_type(files: MessageFiles, tmp_path: Path) -> None:
    (tmp_path / 'ме"ню.png').write_bytes(PICTURE)
    loaded = await files.load(Attachment(PHOTO, path=str(tmp_path / 'ме"ню.png')))
    assert (loaded.name, loaded.media_type, loaded.data) == ("ме_ню.png", "image/png", PICTURE)


@pytest.mark.parametrize("name", ["missing.png", "large.bin", "."])
async def test_a_file_that_is_missing_or_too_large_is_not_loaded(
    files: MessageFiles, tmp_path: Path, name: str
) -> None:
    (tmp_path / "large.bin").write_bytes(bytes(2**20 + 1))
    with pytest.raises(FileNotLoaded):
        await files.load(Attachment(PHOTO, path=str(tmp_path / name)))


async def test_a_file_in_whose_place_a_link_was_put_meanwhile_is_not_sent(files: MessageFiles, tmp_path: Path) -> None:
    """The file was checked when the message was ordered, which may be days ago."""
    (tmp_path / "secrets").write_text("hunter2")
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot" / "menu.png").symlink_to(tmp_path / "secrets")
    (tmp_path / "folder").symlink_to(tmp_path / "bot")
    (tmp_path / "bot" / "real.png").write_bytes(PICTURE)
    for name in ("bot/menu.png", "folder/real.png"):
        attachment = Attachment(PHOTO, path=str(tmp_path / name))
        with pytest.raises(FileNotLoaded):
            await files.load(attachment)
        assert find_files([attachment], 2**20)[0] == []
    assert find_files([Attachment(PHOTO, path=str(tmp_path / "bot" / "real.png"))], 2**20)[1] == []


@pytest.mark.parametrize("path", ["/menu.png", "/moved"])
async def test_a_file_is_downloaded_also_after_a_redirect(files: MessageFiles, server: FileServer, path: str) -> None:
    loaded = await files.load(Attachment(PHOTO, url=server.url + path))
    assert (loaded.media_type, loaded.data) == ("image/png", PICTURE)


@pytest.mark.parametrize("path", ["/big", "/round", "/gone"])
async def test_a_download_that_is_too_large_or_fails_is_not_loaded(
    files: MessageFiles, server: FileServer, path: str
) -> None:
    with pytest.raises(FileNotLoaded) as failed:
        await files.load(Attachment(PHOTO, url=server.url + path))
    assert server.url not in str(failed.value)


async def test_a_private_address_is_not_connected_to_unless_that_is_allowed(server: FileServer) -> None:
    careful = MessageFiles(2**20)
    for url in (server.url, server.url.replace("127.0.0.1", "localhost"), "file:///etc/passwd", "http://[::1]:1/x"):
        with pytest.raises(FileNotLoaded):
            await careful.load(Attachment(PHOTO, url=f"{url}/menu.png"))
    await careful.close()
    assert server.paths == []


def test_a_file_is_named_by_the_last_part_of_its_address() -> None:
    assert [file_name(url) for url in ("https://x.org/a/%D0%BC.png?v=1", "https://x.org/", "https://[")] == [
        "м.png",
        "file",
        "file",
    ]
    assert label_of(Attachment(PHOTO, provider_id="photo1_2")) == "photo"
    assert label_of(Attachment(PHOTO, path="/bot/menu.png")) == "photo menu.png"


class FirstLoadFails(Uploads):
    """Uploads in a store that is away at first."""

    def __init__(self) -> None:
        self.loads = 0

    async def load(self, tenant: str, upload_id: str, file: IO[bytes]) -> bool:
        self.loads += 1
        if self.loads == 1:
            raise StoreUnavailable("away")
        file.write(PICTURE)
        return True


async def test_a_file_that_could_not_be_loaded_is_loaded_for_the_next_parcel() -> None:
    content = Content(attachments=[Attachment(PHOTO, file="1", name="a.png")])
    files = UploadedFiles(FirstLoadFails())
    with pytest.raises(StoreUnavailable):
        await read(files, content)
    assert await read(files, content) == PICTURE
    files.close()


async def read(files: UploadedFiles, content: Content) -> bytes:
    async with files.on_disk("t", content) as shown:
        assert shown is not None
        return Path(shown.attachments[0].path).read_bytes()
