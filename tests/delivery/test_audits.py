"""Audits over HTTP: one at a time, its findings, a repair after it was shown, a run whose process has ended."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec import json

from core.audit.background import AuditRun
from core.queue import NewTask, Queue
from core.redis.keys import KEYS
from tests.delivery.conftest import Api
from tests.delivery.test_authentication import a_key
from tests.support.waiting import until

KIND = KEYS["kinds"].at(0)


@pytest.fixture
async def operator(api: Api) -> Api:
    return await a_key(api, "operator")


async def ended(api: Api) -> Any:
    """The last audit, as soon as it is over."""

    async def over() -> Any:
        view = (await api.call("GET", "/v1/audits")).json
        return view if view["run"]["state"] != "running" else None

    return await until(over, within=60, every=0.1)


async def test_an_operator_starts_an_audit_and_repairs_what_it_has_found(operator: Api) -> None:
    assert (await operator.call("GET", "/v1/audits")).json == {"run": None, "findings": []}
    await Queue(operator.store).put("t", NewTask("x", kind="k"))
    await operator.store.redis.zadd(KIND, {"stranger": 0})
    await operator.store.redis.set("somebody's own", "x")
    started = await operator.call("POST", "/v1/audits")
    assert (started.status, started.json["state"], started.json["by"]) == (202, "running", "test")
    again = await operator.call("POST", "/v1/audits")
    assert (again.status, again.code) == (409, "AUDIT_RUNNING")
    view = await ended(operator)
    assert (view["run"]["state"], view["run"]["tasks"], view["run"]["violations"]) == ("done", 1, 2)
    by_key = {one["key"]: one for one in view["findings"]}
    assert (by_key["somebody's own"]["repair"], by_key["somebody's own"]["why"]) == (None, "its owner is unknown")
    assert by_key[KIND]["repair"] == "lists a kind iff a live task has it"
    assert await operator.store.redis.zscore(KIND, "stranger") is not None, "showing a repair changes nothing"
    for key, status, changes in ((KIND, 200, 1), (KIND, 200, 0)):
        body = {"run": view["run"]["id"], "number": by_key[key]["number"]}
        done = await operator.call("POST", "/v1/audits:repair", body)
        assert (done.status, len(done.json["changes"])) == (status, changes)
    assert await operator.store.redis.zscore(KIND, "stranger") is None
    refused = {"run": view["run"]["id"], "number": by_key["somebody's own"]["number"]}
    assert (await operator.call("POST", "/v1/audits:repair", refused)).code == "NO_SAFE_REPAIR"
    assert (await operator.call("POST", "/v1/audits:repair", {**refused, "run": "older"})).code == "FINDING_NOT_FOUND"
    assert (await operator.call("POST", "/v1/audits")).status == 202, "the first one has freed the place"
    await ended(operator)


async def test_an_audit_whose_process_was_killed_is_broken_off_and_holds_no_other_back(operator: Api) -> None:
    now = 1_700_000_000_000
    run = json.encode(AuditRun(id="killed", by="x", started=now, beat=now)).decode()
    await operator.store.redis.set(KEYS["audit"].at(0), run, px=timedelta(minutes=1))
    view = (await operator.call("GET", "/v1/audits")).json
    assert view["run"]["state"] == "broken_off"
    assert (await operator.call("POST", "/v1/audits")).status == 202
    assert (await ended(operator))["run"]["state"] == "done"
