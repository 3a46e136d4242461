"""Asks Sentinels over our own connection which server is the primary.

Called by `core.redis.topology`.
"""

import asyncio
from collections.abc import Sequence

from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.connection import ServerAddress, StoreConnection
from core.redis.sentinels.sentinel_set import SentinelSet

ANSWER = 1.0
"""Seconds for a Sentinel's answer. A frozen one must not delay the others."""


class PrimaryNotFound(RedisConnectionError):
    """No primary can be named at present. `code` is stable; `is_wrong_name`: waiting does not help."""

    def __init__(self, code: str, detail: str, *, is_wrong_name: bool = False) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.is_wrong_name = is_wrong_name


async def find_primary(sentinels: SentinelSet) -> tuple[int, str, int]:
    """Return epoch, host and port of the primary: the newest that a majority reports, or that is reported within a
    second. Raises PrimaryNotFound.
    """
    asking = [asyncio.create_task(ask(sentinels.name, one)) for one in sentinels.sentinels]
    known, faults = [], []
    try:
        for answer in asyncio.as_completed(asking):
            try:
                known.append(await answer)
            except (RedisError, OSError, TimeoutError) as fault:
                faults.append(fault)
            if len(known) > len(asking) // 2:
                break
    finally:
        await cancel_and_wait(*(one for one in asking if not one.done()))
        await asyncio.gather(*asking, return_exceptions=True)  # faults that nobody needs are not logged
    if not known:
        raise _not_found(sentinels, faults)
    return max(known)


async def ask(name: str, sentinel: ServerAddress) -> tuple[int, str, int]:
    """Return epoch, host and port of the primary as one Sentinel knows it.

    The Sentinel that leads a promotion lists the old server under the new epoch until all replicas follow the new one.
    By GET-MASTER-ADDR-BY-NAME it names the new one.
    """
    async with asyncio.timeout(ANSWER):
        connection = await StoreConnection.open(sentinel)
        try:
            facts = await connection.request("SENTINEL", "MASTER", name)
            host, port = await connection.request("SENTINEL", "GET-MASTER-ADDR-BY-NAME", name)
        finally:
            connection.close()
    return int(facts["config-epoch"]), str(host), int(port)


def _not_found(sentinels: SentinelSet, faults: Sequence[Exception]) -> PrimaryNotFound:
    """Return why no Sentinel names the primary: the first reason that waiting does not mend, else the first."""
    for fault in faults:
        if "No such master" in str(fault) or "No such primary" in str(fault):
            return PrimaryNotFound(
                "SENTINEL_NAME_UNKNOWN",
                f"the Sentinels of {sentinels} know no primary {sentinels.name!r}. Correct the name in ADA_REDIS_URL; "
                "redis-cli -p 26379 SENTINEL MASTERS lists those that they know.",
                is_wrong_name=True,
            )
        if isinstance(fault, AuthenticationError | ResponseError):
            return PrimaryNotFound(
                "SENTINEL_REFUSES",
                f"a Sentinel of {sentinels} refuses: {fault}. Its password is the option sentinel_password of "
                "ADA_REDIS_URL.",
                is_wrong_name=True,
            )
    reason = str(faults[0]) or type(faults[0]).__name__
    return PrimaryNotFound("SENTINEL_UNREACHABLE", f"no Sentinel of {sentinels} answers: {reason}")
