"""The action log: what operators, programs and administrators change for others (W-04). One bounded stream per tenant.

An entry is written right after its change (docs/decisions/0104). After a lost connection it may be there twice. An
action of many steps, such as all tasks of a filter, has one entry (lua/operations/functions/write_action.lua).
"""

import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from core.errors import malformed_cursor
from core.model.clock import from_ms, to_ms
from core.redis.store import Store

KEPT = 20_000
MAX_REASON = 500
_ID = re.compile(r"[0-9]{1,15}-[0-9]{1,15}")
_MOST_READ = 5000
_PAGE = 500


class OperatorAction(Struct, frozen=True):
    """One change. `who`: the id of a key, or `person:<id>`. `via`: console, api, cli or bot. `target`: the address of
    what was changed. `count`: how many things it was. `why`: "" if no reason was given. `filter`: by what they were
    selected, as `name=value` with spaces between, "" if they were named.
    """

    who: str
    name: str
    via: str
    what: str
    target: str
    count: int = 1
    why: str = ""
    filter: str = ""


class LoggedAction(Struct, frozen=True):
    """An action with its id and time."""

    id: str
    at: datetime
    action: OperatorAction


class ActionFilter(NamedTuple):
    """A filter of actions; None matches all. `what`: the beginning of it."""

    who: str | None = None
    what: str | None = None
    since: datetime | None = None

    def matches(self, action: OperatorAction) -> bool:
        return self.who in (None, action.who) and action.what.startswith(self.what or "")


class ActionLog:
    """Writes and reads the action logs of all tenants."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, tenant: str, action: OperatorAction, step: str = "") -> None:
        """Add an action of now. `step`: the name of the action that this is a step of; what the same caller does under
        one name within a day is one entry. Raises StoreError.
        """
        names = [name for name in action.__struct_fields__ if name != "count"]
        fields = [str(part) for name in names for part in (name, getattr(action, name))]
        whole = f"{action.who} {action.what} {step}" if step else ""
        await self._store.run_for_tenant("write_action", tenant, whole, action.count, KEPT, *fields)

    async def page(
        self, tenant: str, wanted: ActionFilter, cursor: str | None, limit: int
    ) -> tuple[list[LoggedAction], str | None]:
        """Return a page, the newest first, and the cursor of the next one. A page may end early, with a cursor. Raises
        Invalid CURSOR_MALFORMED.
        """
        if cursor and not _ID.fullmatch(cursor):
            raise malformed_cursor()
        found: list[LoggedAction] = []
        read, last = 0, cursor
        async for entry in self._newest(tenant, wanted.since, cursor):
            if len(found) == limit or read == _MOST_READ:
                return found, last
            last, read = entry.id, read + 1
            if wanted.matches(entry.action):
                found.append(entry)
        return found, None

    async def _newest(self, tenant: str, since: datetime | None, before: str | None) -> AsyncIterator[LoggedAction]:
        key, oldest = self._store.tenant_key("actions", tenant), str(to_ms(since)) if since else "-"
        while True:
            latest = f"({before}" if before else "+"
            rows = await self._store.command("XREVRANGE", key, latest, oldest, "COUNT", _PAGE)
            for entry_id, flat in rows:
                yield _entry(entry_id, dict(zip(flat[::2], flat[1::2], strict=True)))
            if len(rows) < _PAGE:
                return
            before = rows[-1][0]


def _entry(entry_id: str, fields: dict[str, str]) -> LoggedAction:
    action = OperatorAction(**{**fields, "count": int(fields["count"])})  # type: ignore[arg-type]  # written by `write`
    return LoggedAction(entry_id, from_ms(int(entry_id.partition("-")[0])), action)
