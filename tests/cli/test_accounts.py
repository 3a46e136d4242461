"""Accounts that are set at the console: stored encrypted, used by couriers, and mended without a restart of `up`."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from redis import Redis

from cli.processes.embedded_valkey import running_url
from cli.processes.supervisor import read_announcement
from tests.cli.installation import Installation, new_installation
from tests.support.waiting import await_sync

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The settings of a simulated VK, which is none of the installation's own."""
    for sandbox in new_installation(tmp_path_factory.mktemp("sandbox")):
        sandbox.start("sandbox", "--json")
        found = await_sync(partial(announced, sandbox), within=150, what=f"the sandbox ({sandbox.log})")
        yield {**found["environment"], "page": found["page"]}


def announced(sandbox: Installation) -> Any:
    """Return what the sandbox announces; None until it is ready."""
    return next(filter(None, map(read_announcement, sandbox.log.read_text().splitlines())), None)


@pytest.fixture
def installation(provider: dict[str, str], tmp_path: Path) -> Iterator[Installation]:
    """An installation that knows where VK is, and has no token of it."""
    for one in new_installation(tmp_path):
        one.environment["ADA_VK_API_URL"] = provider["ADA_VK_API_URL"]
        yield one


class Operator:
    """Calls the API with the first key."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self._url = installation.up()["api"]
        self._key = (installation.directory / "data" / "api_key").read_text().strip()

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the JSON of a response, a problem too."""
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(self._url + path, data, headers, method=method)) as response:
                content = response.read()
        except HTTPError as error:
            content = error.read()
        return json.loads(content) if content else None

    def account(self) -> Any:
        return next(one for one in self.call("GET", "/v1/accounts")["accounts"] if one["channel"] == "vk")

    def set_token(self, token: str, version: int) -> Any:
        return self.call("PATCH", "/v1/accounts/vk", {"version": version, "settings": {"ADA_VK_TOKEN": token}})

    def states(self) -> list[str]:
        return [one["state"] for one in self.account()["processes"]]

    def informed_of(self, channel: str) -> int | None:
        """Return how many people were informed that a channel has stopped; None if it has not."""
        listed = self.call("GET", "/v1/channels")["channels"]
        informed: int | None = next(one for one in listed if one["channel"] == channel).get("informed")
        return informed


def stored(installation: Installation) -> str:
    """All that the server has, as one text."""
    with Redis.from_url(running_url(installation.directory / "data" / "valkey") or "", decode_responses=True) as redis:
        return str(redis.hgetall("accounts:{0}"))


@pytest.mark.parametrize("processes", ["many", "few"])
def test_an_account_is_set_refused_mended_by_one_of_two_people_and_tested_while_up_runs(
    installation: Installation, provider: dict[str, str], processes: str
) -> None:
    installation.environment["ADA_PROCESSES"] = processes
    operator, token = Operator(installation), provider["ADA_VK_TOKEN"]
    assert operator.account()["version"] == 0
    assert operator.set_token("not-a-token", 0)["version"] == 1
    await_sync(lambda: operator.account()["is_refused"], within=60, what="the refusal")
    assert operator.set_token(token, 1)["version"] == 2
    await_sync(lambda: operator.states() == ["running"], within=60, what="the courier")
    account = operator.account()
    assert account["answer"] == f"accepted as {account['account']}"
    assert account["settings"] == [{"name": "ADA_VK_TOKEN", "source": "the console", "may_change": True}]
    assert token not in json.dumps(operator.call("GET", "/v1/accounts")) + json.dumps(
        operator.call("GET", "/v1/actions")
    )
    assert token not in stored(installation) + installation.log.read_text()
    assert operator.set_token("of-somebody-else", 1)["code"] == "ACCOUNT_CHANGED"
    body = {"version": 2, "settings": {"ADA_VK_TOKEN": "", "ADA_VK_TIMEOUT": "3s"}}
    assert operator.call("PATCH", "/v1/accounts/vk", body)["code"] == "SETTING_UNKNOWN"
    assert operator.call("PATCH", "/v1/accounts/echo", body)["code"] == "ACCOUNT_NOT_FOUND"
    before = account["answered"]
    operator.call("POST", f"/v1/processes/{account['processes'][0]['id']}/requests", {"request": "test"})
    await_sync(lambda: operator.account()["answered"] > before, within=30, what="the test of the account")
    assert installation.ada("courier", "vk").stdout == "`./ada up` runs courier vk with its own account\n"


def test_a_halted_courier_is_started_again_by_the_verb_beside_up_and_by_the_api(
    installation: Installation, provider: dict[str, str]
) -> None:
    installation.environment["ADA_VK_TOKEN"] = provider["ADA_VK_TOKEN"]
    operator = Operator(installation)
    await_sync(lambda: operator.states() == ["running"], within=60, what="the courier")
    assert operator.set_token("another", 0)["code"] == "ACCOUNT_SET_ELSEWHERE"
    del installation.environment["ADA_VK_TOKEN"]  # as in another terminal
    for start in (
        lambda: installation.ada("courier", "vk").stdout,
        lambda: operator.call("POST", "/v1/processes:start", {"kind": "courier", "name": "vk"}),
        lambda: installation.ada("processes", "start", "courier", "vk").stdout,
    ):
        refuse(provider)
        installation.ada("send", "--to", "vk:200001", "--text", "hello")
        await_sync(lambda: operator.states() == ["halted"], within=60, what="the end of the courier")
        await_sync(lambda: operator.informed_of("vk") == 0, within=60, what="the note that there is no administrator")
        change_rules(provider, "DELETE")
        start()
        await_sync(lambda: operator.states() == ["running"], within=60, what="the courier")
        assert operator.informed_of("vk") is None


def refuse(provider: dict[str, str]) -> None:
    """Let VK refuse the token of the courier; the bot beside it calls other methods."""
    rule = {"channel": "vk", "method": "execute", "fault": "request_error", "value": 5}
    change_rules(provider, "POST", json.dumps(rule).encode())


def change_rules(provider: dict[str, str], method: str, body: bytes | None = None) -> None:
    with urlopen(Request(provider["page"].rstrip("/") + "/rules", body, JSON, method=method)):
        pass
