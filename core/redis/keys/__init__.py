"""Every Redis key of Ada: name, type, lifetime and content. The Lua functions get the same names from here.

A key is `Key.<name>(…)` in Lua and `KEYS["<name>"].at(shard, …)` in Python; both are built from the pattern in one of
the tables of this package.
`{s}` is the shard tag: everything of one delivery, its tasks in all channels included, is in one slot. A key without
it belongs to the server.
"""

import re

from core.redis.keys.conversations import CONVERSATIONS
from core.redis.keys.deliveries import DELIVERIES
from core.redis.keys.installation import INSTALLATION
from core.redis.keys.jobs import JOBS, QUEUE
from core.redis.keys.key import Key, Lifetime, regex_of
from core.redis.keys.people import ACCESS, PEOPLE

__all__ = ["KEYS", "LAYOUT", "PERMANENT", "Key", "Lifetime", "bell", "is_ours", "kind_of", "layout_of_shards"]

# The layout of the keys below and their content. Versions of Ada with the same number work side by side on one server;
# a version with another number refuses to start (docs/decisions/0020). Raise it when an older function would misread
# data of a newer one, or the other way round; not for a key or field that the older function does not touch.
LAYOUT = 5


def layout_of_shards(shards: int) -> int:
    """Return the layout of data in this many shards: with several, a tenant has not stood in shard 0 since
    docs/decisions/0139.
    """
    return LAYOUT if shards == 1 else LAYOUT + 1


_TABLE = (*DELIVERIES, *QUEUE, *PEOPLE, *ACCESS, *CONVERSATIONS, *JOBS, *INSTALLATION)

KEYS = {key.name: key for key in _TABLE}

# Keys that may stay on a server for ever. All others have a TTL or go with their work.
PERMANENT = tuple(key for key in _TABLE if key.lifetime is Lifetime.FOREVER)


_ANY = re.compile("|".join(f"(?:{regex_of(key.pattern).pattern})" for key in _TABLE), re.DOTALL)


def is_ours(name: str) -> bool:
    """Return whether a key found on a server is one of Ada's."""
    return _ANY.fullmatch(name) is not None


def bell(shard: int, tube: str) -> str:
    """Return the key whose `del` or `expired` wakes a sleeping worker of `tube`."""
    return KEYS["bell"].at(shard, tube)


def kind_of(name: str) -> Key | None:
    """Return the kind of a key found on a server; None if it is not one of Ada's. The longest matching pattern wins."""
    matching = [key for key in _TABLE if key.matches(name)]
    return max(matching, key=lambda key: len(key.pattern), default=None)
