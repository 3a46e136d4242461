"""The URL of Sentinels (docs/high-availability.md). User, password, database and options are those of the servers;
`sentinel_username` and `sentinel_password` are options for the Sentinels. Pure.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode

from core.redis.connection import ServerAddress

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
