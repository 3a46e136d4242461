"""The client as programs outside of this checkout import it (docs/queue.md, Import it)."""

import subprocess
import sys
import tomllib
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.servers import Server

PROGRAM = """
import asyncio, sys
from datetime import timedelta
from core.queue import Attempt, Backoff, Tube, connect

async def shout(attempt: Attempt) -> str:
    return attempt.body.upper()

async def main() -> None:
    async with connect(sys.argv[1]) as client:
        await client.tubes.create(Tube("voices", backoff=Backoff(timedelta(seconds=1))))
        worker = client.worker("voices", shout)
        running = asyncio.create_task(worker.run())
        print(await client.call("voices", "hello"))
        worker.stop()
        await running

asyncio.run(main())
print(sorted({"aiohttp", "yaml", "telethon", "cli", "delivery", "jobs"} & {*sys.modules}))
"""


def test_a_program_of_another_folder_uses_the_client_with_two_libraries(own_server: Server, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, str(program), own_server.place.tcp_url]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["HELLO", "[]"]), done.stderr


def test_an_installed_client_has_its_types_and_its_functions() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert (ROOT / "core" / "py.typed").is_file()
    assert {"py.typed", "*.lua"} <= set(settings["package-data"]["*"])
    assert {"core*", "lua*"} <= set(settings["packages"]["find"]["include"])
