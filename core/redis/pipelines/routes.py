"""What a pipeline asks of those of the other primaries; `core.redis.pipelines.pipelines` answers it."""

from typing import Protocol

from redis.exceptions import RedisError

from core.redis.topology import Topology


class Routes(Protocol):
    """The pipelines of all primaries, for the one of `primary`."""

    async def read_again(self, primary: Topology) -> bool:
        """Find out where the primaries are, and do `pass_on`. Return whether this primary still has anything."""

    def is_redirected(self, primary: Topology, home: int, refusal: RedisError) -> bool:
        """Return whether a refusal means that another primary has this home."""

    def pass_on(self, primary: Topology) -> None:
        """Give the waiting calls of what other primaries have to their pipelines. Nothing is in flight."""
