"""Idempotency-Key: a repeated write is done once and gets the first response."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from core.admission.idempotency import Idempotency
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.model.history_key import HistoryKey, Id
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from delivery.http.context import ApiServices
from tests.delivery.conftest import Api, ApiResponse, delivery_body
from tests.support.servers import Server
from tests.support.waiting import stays, until
from tests.system.crash.cuttable_link import CuttableLink

LATER = "2030-01-01T00:00:00+03:00"
KEY = {"Idempotency-Key": "one"}


async def test_a_thousand_identical_requests_at_once_make_one_delivery(api: Api) -> None:
    body = delivery_body(deliver_at=LATER, far=True)
    responses = await asyncio.gather(*(api.call("POST", "/v1/deliveries", body, headers=KEY) for _ in range(1000)))
    assert {response.status for response in responses} == {202}
    assert len({response.body for response in responses}) == 1
    assert len({response.headers["Location"] for response in responses}) == 1
    assert Counter(response.headers.get("Idempotency-Replayed") for response in responses) == {"true": 999, None: 1}
    assert len((await api.call("GET", "/v1/deliveries")).json["deliveries"]) == 1


async def test_the_same_key_with_another_request_is_refused(api: Api) -> None:
    await api.call("POST", "/v1/deliveries", delivery_body(), headers=KEY)
    other = await api.call("POST", "/v1/deliveries", delivery_body(text="another"), headers=KEY)
    assert (other.status, other.code) == (422, "IDEMPOTENCY_KEY_REUSED")


WRITES = [
    ("POST", "/v1/history-keys", {"sender": {"id": 42}}, 201),
    ("PATCH", "{delivery}", {"deliver_at": "2031-01-01T00:00:00Z", "far": True}, 200),
    ("DELETE", "{delivery}", None, 200),
    ("POST", "/v1/cancellations", {"tag": "exam"}, 200),
    ("POST", "/v1/users", {"id": 8}, 201),
    ("PATCH", "/v1/users/7", {"name": "Иванов"}, 200),
    ("DELETE", "/v1/users/7", None, 204),
    ("POST", "/v1/contacts", {"user": 7, "channel": "sms", "address": "+79990000007"}, 201),
    ("DELETE", "/v1/contacts/7/telegram/100007", None, 204),
    ("POST", "/v1/groups", {"id": "B"}, 201),
    ("PATCH", "/v1/groups/A", {"title": "A group"}, 200),
    ("DELETE", "/v1/groups/A", None, 204),
    ("PUT", "/v1/groups/A/members/7", None, 204),
    ("DELETE", "/v1/groups/A/members/7", None, 204),
    ("POST", "/v1/supergroups", {"id": "all", "groups": ["A"]}, 201),
    ("PATCH", "/v1/supergroups/S", {"title": "A supergroup"}, 200),
    ("DELETE", "/v1/supergroups/S", None, 204),
    ("PUT", "/v1/supergroups/S/groups/A", None, 204),
    ("DELETE", "/v1/supergroups/S/groups/A", None, 204),
    ("PUT", "/v1/ownerships/7/group/A", None, 204),
    ("DELETE", "/v1/ownerships/7/group/A", None, 204),
]


async def fill_directory(api: Api) -> None:
    """A person, a group and a supergroup for the writes above."""
    await api.call("POST", "/v1/users", {"id": 7, "contacts": {"telegram": "100007"}})
    await api.call("POST", "/v1/groups", {"id": "A"})
    await api.call("POST", "/v1/supergroups", {"id": "S"})


async def repeated(api: Api, method: str, path: str, body: object) -> list[ApiResponse]:
    return [await api.call(method, path, body, headers={"Idempotency-Key": "two"}) for _ in range(2)]


@pytest.mark.parametrize(("method", "path", "body", "status"), WRITES)
async def test_every_other_write_is_done_once_and_its_response_repeated(
    api: Api, method: str, path: str, body: object, status: int
) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at=LATER, far=True, tags=["exam"]))
    await fill_directory(api)
    first, second = await repeated(api, method, path.format(delivery=made.headers["Location"]), body)
    assert (first.status, second.status, second.body) == (status, status, first.body)
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"


async def test_a_key_used_with_another_write_is_refused(api: Api) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at=LATER, far=True))
    body = {"deliver_at": "2031-01-01T00:00:00Z", "far": True}
    assert (await api.call("PATCH", made.headers["Location"], body, headers=KEY)).status == 200
    other = await api.call("PATCH", made.headers["Location"], {"deliver_at": LATER, "far": True}, headers=KEY)
    assert (other.status, other.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    elsewhere = await api.call("DELETE", made.headers["Location"], headers=KEY)
    assert (elsewhere.status, elsewhere.code) == (422, "IDEMPOTENCY_KEY_REUSED")


@pytest.mark.parametrize(
    ("path", "others"),
    [
        ("/v1/import?kind=users&dry_run=1", ["/v1/import?kind=users", "/v1/import?kind=groups&dry_run=1"]),
        ("/v1/import?kind=users", ["/v1/import?kind=users&dry_run=1"]),
    ],
)
async def test_a_key_used_with_another_query_is_refused(api: Api, path: str, others: Sequence[str]) -> None:
    """What was only tried out is not taken for done."""
    headers = {**KEY, "Content-Type": "text/csv"}
    assert (await api.call("POST", path, b"id\n7\n", headers=headers)).status == 200
    for other in others:
        refused = await api.call("POST", other, b"id\n7\n", headers=headers)
        assert (refused.status, refused.code) == (422, "IDEMPOTENCY_KEY_REUSED")


async def test_a_refused_write_is_forgotten_and_can_be_repeated(api: Api) -> None:
    body = {"deliver_at": "2031-01-01T00:00:00Z", "far": True}
    before = await api.keys()
    refused = await api.call("PATCH", "/v1/deliveries/0.42.1763712000000000000", body, headers=KEY)
    assert (refused.status, refused.code) == (404, "HISTORY_NOT_FOUND")
    assert await api.keys() == before
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at=LATER, far=True))
    assert (await api.call("PATCH", made.headers["Location"], body, headers=KEY)).status == 200


class SlowDeliveries(Deliveries):
    """Reserves a key at once and returns it when `proceed` is set."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, Channels(store))
        self.reserved, self.proceed = asyncio.Event(), asyncio.Event()
        self.calls = 0

    async def reserve(self, tenant: str, sender: Id, lane: str = "") -> HistoryKey:
        self.calls += 1
        key = await super().reserve(tenant, sender, lane)
        self.reserved.set()
        await self.proceed.wait()
        return key


class TestInProgress:
    @pytest.fixture
    def services(self, services: ApiServices) -> ApiServices:
        idempotency = Idempotency(services.core.store, in_progress=timedelta(seconds=1.5))
        core = replace(services.core, deliveries=SlowDeliveries(services.core.store))
        return replace(services, core=core, idempotency=idempotency)

    @pytest.fixture
    def slow(self, services: ApiServices) -> SlowDeliveries:
        assert isinstance(services.core.deliveries, SlowDeliveries)
        return services.core.deliveries

    async def test_a_repeat_while_the_first_request_is_in_progress_is_refused(self, api: Api) -> None:
        slow = api.services.core.deliveries
        assert isinstance(slow, SlowDeliveries)
        body = {"sender": {"id": 1}}
        first = asyncio.create_task(api.call("POST", "/v1/history-keys", body, headers=KEY))
        await slow.reserved.wait()
        second = await api.call("POST", "/v1/history-keys", body, headers=KEY)
        assert (second.status, second.code) == (409, "IDEMPOTENCY_IN_PROGRESS")
        slow.proceed.set()
        assert (await first).status == 201
        assert (await api.call("POST", "/v1/history-keys", body, headers=KEY)).body == (await first).body

    async def test_a_request_stays_in_progress_however_long_it_takes_and_without_its_caller(
        self, api: Api, slow: SlowDeliveries
    ) -> None:
        """The mark of the request ends after 1.5 s if it is not renewed."""
        body = {"sender": {"id": 1}}
        first = asyncio.create_task(api.call("POST", "/v1/history-keys", body, headers=KEY))
        await slow.reserved.wait()
        await cancel_and_wait(first)  # the caller disconnects

        async def is_in_progress() -> bool:
            again = await api.call("POST", "/v1/history-keys", body, headers=KEY)
            return again.code == "IDEMPOTENCY_IN_PROGRESS"

        try:
            async with asyncio.timeout(30):  # a second request that is let through waits, too
                await stays(is_in_progress, during=3, every=0.1)  # one renewal alone lasts for two seconds
        finally:
            slow.proceed.set()

        async def is_stored() -> bool:
            return (await api.call("POST", "/v1/history-keys", body, headers=KEY)).status == 201

        await until(is_stored)
        assert slow.calls == 1

    async def test_a_write_succeeds_although_a_full_store_cannot_keep_its_response(self, api: Api) -> None:
        slow = api.services.core.deliveries
        assert isinstance(slow, SlowDeliveries)
        first = asyncio.create_task(api.call("POST", "/v1/history-keys", {"sender": {"id": 1}}, headers=KEY))
        await slow.reserved.wait()
        await api.store.redis.config_set("maxmemory", 1)
        slow.proceed.set()
        assert (await first).status == 201


async def test_on_a_full_store_cancelling_works_and_stored_responses_are_repeated(api: Api) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at=LATER, far=True))
    kept = await api.call("POST", "/v1/history-keys", {"sender": {"id": 1}}, headers=KEY)
    await api.store.redis.config_set("maxmemory", 1)
    cancelled = await api.call("DELETE", made.headers["Location"], headers={"Idempotency-Key": "another"})
    assert (cancelled.status, cancelled.json["cancelled"]) == (200, 1)
    assert (await api.call("POST", "/v1/history-keys", {"sender": {"id": 1}}, headers=KEY)).body == kept.body
    refused = await api.call("POST", "/v1/history-keys", {"sender": {"id": 1}}, headers={"Idempotency-Key": "new"})
    assert (refused.status, refused.code) == (503, "STORE_FULL")


@pytest.mark.parametrize("key", ["", "я", "k" * 256, "a\tb"])
async def test_a_malformed_idempotency_key_is_refused(api: Api, key: str) -> None:
    response = await api.call("POST", "/v1/deliveries", delivery_body(), headers={"Idempotency-Key": key})
    assert (response.status, response.code) == (400, "IDEMPOTENCY_KEY_MALFORMED")


async def test_tenants_do_not_share_idempotency_keys(api: Api) -> None:
    _, secret = await api.services.api_keys.create("other", ["send"], "other")
    mine = await api.call("POST", "/v1/deliveries", delivery_body(), headers=KEY)
    theirs = await api.as_key(secret).call("POST", "/v1/deliveries", delivery_body(), headers=KEY)
    assert theirs.status == 202
    assert mine.json["id"] != theirs.json["id"]


OPERATIONS = [
    ("POST", "/v1/history-keys", {"sender": {"id": 42}}),
    ("POST", "/v1/deliveries", delivery_body()),
    ("POST", "/v1/deliveries/bulk", None),
    ("PATCH", "{delivery}", {"deliver_at": "2031-01-01T00:00:00Z", "far": True}),
    ("DELETE", "{delivery}", None),
    ("POST", "{delivery}/retry", None),
    ("POST", "/v1/cancellations", {"tag": "none"}),
    ("POST", "/v1/queue/cancellations", {"tag": "none"}),
]


@pytest.mark.parametrize("first", OPERATIONS[:-3], ids=lambda one: f"{one[0]} {one[1]}")
async def test_a_key_used_with_one_operation_is_refused_by_every_other(
    api: Api, first: tuple[str, str, object]
) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at=LATER, far=True))

    async def call(method: str, path: str, body: object) -> ApiResponse:
        return await api.call(method, path.format(delivery=made.headers["Location"]), body, headers=KEY)

    assert (await call(*first)).status < 300
    for other in OPERATIONS:
        if other is not first:
            response = await call(*other)
            assert (response.status, response.code) == (422, "IDEMPOTENCY_KEY_REUSED"), other


async def test_a_response_is_kept_for_a_day_and_so_is_the_key_of_a_bulk(store: Store) -> None:
    idempotency = Idempotency(store)
    assert await idempotency.begin("t", "a", "request") is None
    await idempotency.finish("t", "a", "request", 201, b"{}")
    assert await idempotency.bind("t", "b", "bulk")
    keys = [key async for key in store.redis.scan_iter("idempotency:*")]
    assert len(keys) == 2
    for key in keys:
        assert timedelta(hours=23) < timedelta(milliseconds=await store.redis.pttl(key)) <= timedelta(days=1)


async def test_a_request_is_no_repeat_of_itself_if_the_reply_of_the_store_is_lost(server: Server) -> None:
    """The store repeats the command, which then finds the mark that it has written itself."""
    link = CuttableLink(server.place.port)
    await link.start()
    store = await Store.open(server.url_through(link.port))
    link.block_replies(b"fingerprint")
    beginning = asyncio.create_task(Idempotency(store).begin("t", "a", "request"))
    await until(lambda: link.blocked > 0)
    link.cut()
    assert await beginning is None
    await store.close()
    await link.stop()
