"""The memory of a pending task."""

from core.queue import NewTask
from tests.support.stack import Stack

COUNT = 2000  # just below a power of two, as the tables of the server are largest there for each task


async def test_a_pending_task_takes_no_more_than_700_bytes_with_a_body_of_200(stack: Stack) -> None:
    """With its index by tenant and its place in the order. Further fields cost extra.

    On the embedded Valkey; Redis 7 takes about 710 bytes.
    """
    before = await used(stack)
    await stack.queue.put_many("t", [NewTask("x" * 200) for _ in range(COUNT)])
    assert (await used(stack) - before) / COUNT <= 700
    await stack.queue.purge()


async def used(stack: Stack) -> int:
    """Return the bytes in use without the buffers of connections and of the log."""
    info = await stack.redis.info("memory")
    return int(info["used_memory"] - info["mem_clients_normal"] - info["mem_aof_buffer"])
