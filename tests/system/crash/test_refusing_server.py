"""A server that runs and refuses writes: its disk is full, it has become a replica, or too few replicas follow it."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from redis.asyncio import Redis

from core.model.states import Status
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.api_client import delivery
from tests.system.crash.installation import SMS, Installation, person


@asynccontextmanager
async def disk_full(server: Server, plain: Redis, directory: Path) -> AsyncIterator[None]:
    """Saving fails: a directory is in the place of the dump."""
    blocked = server.log.parent / "dump.rdb"
    (blocked / "taken").mkdir(parents=True)
    await plain.config_set("save", "3600 1000000")
    await plain.bgsave()
    await until(lambda: last_save(plain, "err"))
    yield
    shutil.rmtree(blocked)
    await plain.bgsave()
    await until(lambda: last_save(plain, "ok"))


async def last_save(plain: Redis, status: str) -> bool:
    return bool((await plain.info("persistence"))["rdb_last_bgsave_status"] == status)


@asynccontextmanager
async def demoted(server: Server, plain: Redis, directory: Path) -> AsyncIterator[None]:
    """Another server takes the place of the primary for a while."""
    other = Server(directory / "other")
    other.start()
    async with Redis.from_url(other.url) as primary:
        await plain.config_set("repl-diskless-sync-delay", 0)
        await primary.config_set("masterauth", server.place.password)
        await primary.replicaof("127.0.0.1", str(server.place.port))
        await until(lambda: is_linked(primary))
        await primary.replicaof("NO", "ONE")
        await primary.config_set("repl-diskless-sync-delay", 0)
        await plain.config_set("masterauth", other.place.password)
        await plain.replicaof("127.0.0.1", str(other.place.port))
        await until(lambda: is_linked(plain))
        yield
        await plain.replicaof("NO", "ONE")
    other.kill()


async def is_linked(replica: Redis) -> bool:
    return bool((await replica.info("replication")).get("master_link_status") == "up")


@asynccontextmanager
async def without_replicas(server: Server, plain: Redis, directory: Path) -> AsyncIterator[None]:
    await plain.config_set("min-replicas-to-write", 1)
    yield
    await plain.config_set("min-replicas-to-write", 0)


STATES = {
    "STORE_CANNOT_SAVE": (disk_full, "MISCONF"),
    "STORE_READ_ONLY": (demoted, "READONLY"),
    "STORE_WITHOUT_REPLICAS": (without_replicas, "NOREPLICAS"),
}


async def test_a_server_that_refuses_writes_is_named_everywhere_and_all_goes_on_afterwards(
    own_installation: Installation, tmp_path: Path
) -> None:
    installation = own_installation
    api_process = installation.start_api()
    api = await installation.client_of(api_process)
    courier = await installation.courier(SMS)
    processes, arrived = [api_process, courier], set[str]()
    for number, (code, (refusing, word)) in enumerate(STATES.items()):
        refused, unread, later = (SMS.address(3 * number + n) for n in range(3))
        async with refusing(installation.server, installation.core.redis, tmp_path):
            status, problem = await api.post(delivery({"sms": refused}), code)
            assert (status, problem["code"], problem["detail"]) == (503, code, "Nothing was written.")
            lines = await api.post_bulk([delivery({"sms": unread})])
            assert [(line["status"], line["code"]) for line in lines] == [(503, code)]
            doctor = installation.start("doctor")
            assert await doctor.wait(within=60) == 1
            assert f"{code}: " in doctor.output
            await until(lambda: f"({word})" in courier.output)  # noqa: B023 - awaited at once
            second = installation.start("courier", SMS.name)  # a start waits for nothing but the server
            await second.ready()
        assert (await api.post(delivery({"sms": refused}), code))[0] == 202
        accepted = await installation.deliver(person(3 * number + 2, SMS))
        assert await installation.finished(accepted) == {("sms", Status.SENT): 1}
        arrived |= {refused, later}
        await until(lambda: set(installation.copies(SMS)) == arrived)  # noqa: B023 - awaited at once
        processes += [doctor, second]
    refusals = [line for line in api_process.output.splitlines() if "POST /v1/deliveries" in line]
    assert len(refusals) == len(STATES)
    assert all(word in line for line, (_, word) in zip(refusals, STATES.values(), strict=True))
    assert courier.output.count("no claim") == len(STATES)
    for process in processes:
        assert "Traceback" not in process.output
