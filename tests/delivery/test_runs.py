"""The runs of scenarios over HTTP."""

from dataclasses import replace
from typing import Any

import pytest

from core.errors import NotFound
from core.model.clock import from_ms
from delivery.services import ApiServices
from scenarios.execution.reading import ActionView, RunView
from tests.delivery.conftest import Api

AT = from_ms(1_800_000_000_000)
ACTION = ActionView(
    1,
    "s.main",
    "send",
    "s.yaml:3",
    "completed",
    "unchained",
    None,
    "why",
    AT,
    AT,
    "",
    {"text": "x"},
    {"text": "x"},
    {"a": 1},
    None,
)
RUN = RunView("0.abc", "vk:7", "over", "v1", ["s.main"], AT, None, {"event_text": "x"}, [ACTION])


class Runs:
    """Two runs of one person, in place of the store."""

    async def read(self, tenant: str, run: str) -> Any:
        if run != RUN.id:
            raise NotFound("RUN_NOT_FOUND", "There is no such run.")
        return RUN

    async def newest(self, tenant: str, person: str, cursor: str | None, limit: int) -> tuple[list[Any], str | None]:
        return ([RUN], None) if cursor else ([RUN], "0.abc")


@pytest.fixture
async def services(services: ApiServices) -> ApiServices:
    return replace(services, runs=Runs())


async def test_a_run_is_shown_with_its_actions(api: Api) -> None:
    response = await api.call("GET", "/v1/runs/0.abc")
    assert response.status == 200
    assert (response.json["state"], response.json["began"]) == ("over", "2027-01-15T08:00:00Z")
    assert response.json["actions"][0]["why"] == "why"
    assert response.json["actions"][0]["send"] == response.json["actions"][0]["given"] == {"text": "x"}
    assert response.json["actions"][0]["results"] == {"a": 1}


async def test_an_unknown_run_is_not_found(api: Api) -> None:
    response = await api.call("GET", "/v1/runs/0.def")
    assert (response.status, response.json["code"]) == (404, "RUN_NOT_FOUND")


async def test_the_runs_of_a_person_have_a_next_page(api: Api) -> None:
    first = await api.call("GET", "/v1/runs?user=vk:7&limit=1")
    assert first.json["next"] == "0.abc"
    assert (await api.call("GET", "/v1/runs?user=vk:7&cursor=0.abc")).json["next"] is None


async def test_a_list_needs_a_person(api: Api) -> None:
    assert (await api.call("GET", "/v1/runs")).status == 400


@pytest.mark.row("D-27")
@pytest.mark.parametrize("query", ["user=", "user=7", "user=vk:7&cursor=", "user=vk:7&cursor=x"])
async def test_a_malformed_person_or_cursor_is_refused(api: Api, query: str) -> None:
    response = await api.call("GET", f"/v1/runs?{query}")
    assert (response.status, response.code) == (400, "WRONG_FORMAT")
