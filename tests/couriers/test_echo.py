"""The echo courier, the example of docs/add-a-courier.md."""

import json
from pathlib import Path

import pytest

from couriers.echo import courier as echo
from couriers.sending import SetupError
from tests.couriers.contract import Contract, Provider, message


class EchoProvider(Provider):
    module = echo

    def settings(self) -> echo.Settings:
        return echo.Settings()

    def address(self, number: int) -> str:
        return f"person {number}"

    def received(self, address: str) -> list[str]:
        lines = (self.directory / "echo.jsonl").read_text(encoding="utf-8").split("\n")
        return [line["text"] for line in map(json.loads, filter(None, lines)) if line["address"] == address]

    async def start(self) -> None:
        """A file needs no server."""

    async def stop(self) -> None:
        """A file needs no server."""


@pytest.fixture
def provider(tmp_path: Path) -> EchoProvider:
    return EchoProvider(tmp_path)


class TestEcho(Contract):
    unaddressable = ""


async def test_a_file_that_cannot_be_written_is_a_setup_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="ADA_ECHO_PATH"):
        await echo.open(echo.Settings(path="file/echo.jsonl"), tmp_path)


async def test_a_line_contains_the_random_id(tmp_path: Path) -> None:
    courier = await echo.open(echo.Settings(), tmp_path)
    await courier.attempt([message("somebody")])
    line = json.loads((tmp_path / "echo.jsonl").read_text(encoding="utf-8"))
    assert line["random_id"] == message("somebody").random_id()


async def test_a_person_can_read_the_text_in_the_file(tmp_path: Path) -> None:
    courier = await echo.open(echo.Settings(), tmp_path)
    await courier.attempt([message("somebody", "Пары не будет 😀")])
    assert "Пары не будет 😀" in (tmp_path / "echo.jsonl").read_text(encoding="utf-8")


async def test_the_folder_of_the_file_is_created_and_may_be_there_already(tmp_path: Path) -> None:
    for _ in range(2):
        courier = await echo.open(echo.Settings(path="a/b/echo.jsonl"), tmp_path)
        await courier.attempt([message("somebody")])
    assert len((tmp_path / "a" / "b" / "echo.jsonl").read_text().splitlines()) == 2
