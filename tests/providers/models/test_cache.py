"""The cache of files: ages, one call per key, crashes, its size."""

import asyncio
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from providers.models import FileCache
from providers.models.models import digest_of

DAY = timedelta(days=1)


class Maker:
    """Makes contents and counts them."""

    def __init__(self, size: int = 10) -> None:
        self.made = 0
        self._size = size

    async def content(self) -> bytes:
        self.made += 1
        await asyncio.sleep(0)
        return f"{self.made}".encode().ljust(self._size, b".")

    async def file(self, path: Path) -> None:
        path.write_bytes(await self.content())


@pytest.fixture
def cache(tmp_path: Path) -> FileCache:
    return FileCache(tmp_path / "cache", 10**6, DAY)


def make_older(cache: FileCache, name: str, seconds: float) -> None:
    past = time.time() - seconds
    os.utime(cache.folder / name, (past, past))


async def test_the_same_work_is_answered_from_the_cache_up_to_its_age(cache: FileCache) -> None:
    maker = Maker()
    first = await cache.content("name", DAY, maker.content)
    make_older(cache, "name", DAY.total_seconds() - 60)
    assert await cache.content("name", DAY, maker.content) == first
    make_older(cache, "name", DAY.total_seconds() + 60)
    assert await cache.content("name", DAY, maker.content) != first
    assert await cache.content("other", DAY, maker.content) != first
    assert maker.made == 3


async def test_the_age_is_that_of_the_work_and_not_of_its_last_use(cache: FileCache) -> None:
    maker = Maker()
    await cache.file("name", DAY, maker.file)
    for _ in range(2):
        make_older(cache, "name", 3600)
        await cache.file("name", DAY, maker.file)
    assert time.time() - (cache.folder / "name").stat().st_mtime > 3000
    await cache.file("name", timedelta(minutes=30), maker.file)
    assert maker.made == 2


async def test_an_age_of_zero_asks_for_new_work_each_time(cache: FileCache) -> None:
    maker = Maker()
    answers = [await cache.content("name", timedelta(0), maker.content) for _ in range(3)]
    assert len(set(answers)) == 3


async def test_concurrent_calls_with_one_key_work_once(cache: FileCache) -> None:
    maker = Maker()
    answers = await asyncio.gather(*(cache.content("name", DAY, maker.content) for _ in range(20)))
    assert (maker.made, len(set(answers))) == (1, 1)


async def test_a_call_that_is_cancelled_leaves_the_work_to_the_next(cache: FileCache) -> None:
    started, maker = asyncio.Event(), Maker()

    async def never() -> bytes:
        started.set()
        await asyncio.Event().wait()
        return b""

    first = asyncio.create_task(cache.content("name", DAY, never))
    await started.wait()
    second = asyncio.create_task(cache.content("name", DAY, maker.content))
    first.cancel()
    assert await second == b"1".ljust(10, b".")
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_work_that_fails_leaves_no_file(cache: FileCache) -> None:
    async def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await cache.file("name", DAY, fail)
    assert list(cache.folder.iterdir()) == []


async def test_a_file_without_content_is_made_again(cache: FileCache) -> None:
    """A power failure may leave an empty file."""
    maker = Maker()
    await cache.file("name", DAY, maker.file)
    (cache.folder / "name").write_bytes(b"")
    await cache.file("name", DAY, maker.file)
    assert maker.made == 2


async def test_beyond_the_limit_the_files_that_were_not_used_for_the_longest_time_go(tmp_path: Path) -> None:
    cache, maker = FileCache(tmp_path, 1000, DAY), Maker(size=100)
    for number in range(10):
        await cache.file(f"{number}", DAY, maker.file)
        make_older(cache, f"{number}", 1000 - number)
    await cache.file("0", DAY, maker.file)  # used again
    await cache.file("new", DAY, maker.file)
    assert {path.name for path in tmp_path.iterdir()} == {"new", "0", *(f"{number}" for number in range(2, 10))}


async def test_what_was_not_used_for_the_retention_time_goes(tmp_path: Path) -> None:
    cache, maker = FileCache(tmp_path, 1000, DAY), Maker(size=100)
    await cache.file("old", DAY, maker.file)
    make_older(cache, "old", DAY.total_seconds() + 60)
    await cache.file("new", DAY, maker.file)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


_WRITER = """
import asyncio, signal, sys
from datetime import timedelta
from pathlib import Path
from providers.models import FileCache
async def make(path):
    path.write_bytes(b"half")
    print("half", flush=True)
    signal.pause()
asyncio.run(FileCache(Path(sys.argv[1]), 10**6, timedelta(days=1)).file("name", timedelta(days=1), make))
"""


async def test_a_process_that_is_killed_while_it_writes_leaves_no_half_file(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"half\n"
    process.kill()
    process.wait()
    process.stdout.close()
    (left,) = tmp_path.iterdir()
    cache, maker = FileCache(tmp_path, 1, DAY), Maker()
    make_older(cache, left.name, 7200)
    assert (await cache.file("name", DAY, maker.file)).name == "name"
    assert not left.exists()


async def test_a_reader_keeps_its_file_while_a_new_one_takes_its_place(cache: FileCache) -> None:
    maker = Maker()
    with (await cache.file("name", DAY, maker.file)).open("rb") as opened:
        await cache.file("name", timedelta(0), maker.file)
        assert opened.read().startswith(b"1")
    assert (cache.folder / "name").read_bytes().startswith(b"2")


def test_the_name_of_a_file_depends_on_its_content_alone(tmp_path: Path) -> None:
    for name, content in (("a", b"one"), ("b", b"one"), ("c", b"two")):
        (tmp_path / name).write_bytes(content)
    first, same, other = (digest_of(tmp_path / name) for name in "abc")
    assert first == same != other
    assert len(first) == 64


async def test_no_file_stays_open(cache: FileCache) -> None:
    maker = Maker()
    await cache.file("0", DAY, maker.file)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(1, 21):
        await cache.file(f"{number}", DAY, maker.file)
    assert len(list(Path("/proc/self/fd").iterdir())) < before + 20
