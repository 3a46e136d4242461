"""The Sentinels of a primary: their URL, and which server they name.

The URL: docs/high-availability.md. User, password, database and options are those of the servers; `sentinel_username`
and `sentinel_password` are options for the Sentinels. They are asked over our own connection, for
`core.redis.topology`.
"""

import asyncio
import re
from collections.abc import Collection, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.connection import ServerAddress, StoreConnection

T = TypeVar("T")

SENTINEL_FORM = "redis+sentinel://user:password@host:26379,host:26379/name/0"

_URL = re.compile(r"(rediss?)\+sentinel://(?:([^/?]*)@)?([^/?@]*)(?:/([^/?]*))?(?:/([^?]*))?(?:\?(.*))?")
_PLACE = re.compile(r"(\[[0-9a-fA-F:]+\]|[^:\[\]]+)(?::(\d{1,5}))?")
_SENTINEL_PORT = 26379


@dataclass(frozen=True, slots=True)
class SentinelSet:
    """The Sentinels that watch the primary `name`, and how to log in at the servers."""

    name: str
    sentinels: tuple[ServerAddress, ...]
    login: str = field(repr=False)
    scheme: str
    database: str
    options: str = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> "SentinelSet":
        """Parse a URL of the form above. Raises ValueError, which names no secret."""
        if not (found := _URL.fullmatch(url)):
            raise ValueError(f"a URL of Sentinels has the form {SENTINEL_FORM}")
        scheme, login, places, name, database, query = (part or "" for part in found.groups())
        if "@" in name + database:
            raise ValueError("a special character of the password is not quoted (/ is %2F)")
        if not name:
            raise ValueError("it does not name the primary: the name follows the Sentinels, as in host:26379/name")
        if database and not database.isdecimal():
            raise ValueError(f"after the name it has {database!r}, which is not the number of a database")
        options = dict(parse_qsl(query))
        user, password = options.pop("sentinel_username", ""), options.pop("sentinel_password", "")
        account = f"{quote(user, '')}:{quote(password, '')}@" if user or password else ""
        own = urlencode({name: value for name, value in options.items() if name.startswith("ssl_")})
        sentinels = [
            ServerAddress.parse(f"{scheme}://{account}{host}:{port}?{own}")
            for host, port in server_places(places, "Sentinel", _SENTINEL_PORT)
        ]
        return cls(name, tuple(sentinels), f"{login}@" if login else "", scheme, database or "0", urlencode(options))

    def url_of(self, host: str, port: int) -> str:
        """Return the URL of a server of the set, with its password."""
        place = f"[{host}]" if ":" in host else host
        return f"{self.scheme}://{self.login}{place}:{port}/{self.database}?{self.options}"

    def __str__(self) -> str:
        """Return the URL without the password, for people."""
        places = ",".join(f"{one.host}:{one.port}" for one in self.sentinels)
        return f"{self.scheme}+sentinel://{places}/{self.name}/{self.database}"


def server_places(text: str, kind: str, default: int) -> list[tuple[str, int]]:
    """Return host and port of each server of a list; `kind`: what they are. Raises ValueError."""
    found = []
    for place in text.split(","):
        if not (parts := _PLACE.fullmatch(place)) or int(parts[2] or 0) > 65535:
            raise ValueError(f"{place!r} is not the host:port of a {kind}")
        found.append((parts[1], int(parts[2] or default)))
    return found


def is_sentinel_url(url: str) -> bool:
    return url.partition(":")[0] in ("redis+sentinel", "rediss+sentinel")


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
    known, faults = await of_majority([ask(sentinels.name, one) for one in sentinels.sentinels])
    if not known:
        raise _not_found(sentinels, faults)
    return max(known)


async def of_majority(calls: Collection[Coroutine[Any, Any, T]]) -> tuple[list[T], list[Exception]]:
    """Return what the first servers report, until they are a majority, and their faults; it waits for no other."""
    asking = [asyncio.create_task(call) for call in calls]
    known: list[T] = []
    faults: list[Exception] = []
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
    return known, faults


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
