"""What a pending task costs."""

from core.queue.queue import NewTask
from tests.support.stack import Stack


async def test_a_pending_task_takes_no_more_than_700_bytes_with_a_body_of_200(stack: Stack) -> None:
    """With its index by tenant and its place in the order; what else is set costs its own.

    On the embedded Valkey; Redis 7 takes about 710 for the same.
    """
    before = await used(stack)
    await stack.queue.put_many("t", [NewTask("x" * 200) for _ in range(8000)])
    assert (await used(stack) - before) / 8000 <= 700
    await stack.finish_all()


async def used(stack: Stack) -> int:
    """Bytes, without what the server's connections and its log have in their buffers."""
    told = await stack.redis.info("memory")
    return int(told["used_memory"] - told["mem_clients_normal"] - told["mem_aof_buffer"])
