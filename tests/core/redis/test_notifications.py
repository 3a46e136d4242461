"""The server's notification flags: set at every (re)connect, and reported."""

import asyncio
from datetime import timedelta

from redis.asyncio import Redis

from core.queue import Attempt, Done, Result, Worker, connect
from core.redis.keyspace_events import SETTING, ensure_notifications
from core.redis.store import Store
from tests.support.servers import Server
from tests.support.waiting import until


async def has_our_flags(url: str) -> bool:
    async with Redis.from_url(url, decode_responses=True) as client:
        return set(str((await client.config_get(SETTING))[SETTING])) >= set("Kgx")


async def answer(attempt: Attempt) -> Result:
    return Done("answer")


async def asleep(worker: Worker) -> None:
    """Waits until the worker found nothing to do, also after its subscription."""
    await until(lambda: worker.claims >= 2)


async def test_an_application_that_follows_the_guide_is_woken_on_a_default_server(
    server: Server, client: Redis
) -> None:
    await client.config_set(SETTING, "")
    async with connect(server.url) as queue:
        assert await has_our_flags(server.url)
        worker = queue.worker("sums", answer, max_sleep=timedelta(seconds=30))
        running = asyncio.create_task(worker.run())
        await asleep(worker)
        assert await queue.call("sums", "[1, 2]", timedelta(seconds=10)) == "answer"
        worker.stop()
        await running


async def test_a_worker_sets_the_flags_again_after_the_server_restarted_without_them(own_server: Server) -> None:
    config = own_server.place.config
    config.write_text(config.read_text().replace(f"{SETTING} Kgx", f'{SETTING} ""'))
    own_server.restart()
    async with connect(own_server.url) as queue:
        worker = queue.worker("sums", answer, max_sleep=timedelta(seconds=30))
        running = asyncio.create_task(worker.run())
        await asleep(worker)
        own_server.restart()
        await until(lambda: has_our_flags(own_server.url))
        assert await queue.call("sums", "[]", timedelta(seconds=10)) == "answer"
        worker.stop()
        await running


async def test_what_was_changed_is_reported_once(server: Server, client: Redis) -> None:
    await client.config_set(SETTING, "El")
    store = await Store.open(server.url)
    state = await ensure_notifications(store.command)
    assert "and was set to" in state.changed
    assert (state.missing, state.refusal) == ("", "")
    assert (await ensure_notifications(store.command)).changed == ""
    await store.close()


async def test_flags_that_may_not_be_set_are_reported_as_missing(server: Server, client: Redis) -> None:
    await client.config_set(SETTING, "")
    words = "ACL SETUSER reader on >secret ~* &* +@all -config +config|get"
    await client.execute_command(*words.split())  # type: ignore[no-untyped-call]
    store = await Store.open(f"redis://reader:secret@127.0.0.1:{server.place.port}/0")
    state = await ensure_notifications(store.command)
    assert (state.missing, state.changed) == ("Kgx", "")
    assert "permission" in state.refusal
    await store.close()
    await client.execute_command("ACL", "DELUSER", "reader")  # type: ignore[no-untyped-call]
