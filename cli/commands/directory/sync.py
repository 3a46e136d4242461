"""The verb sync: keeps the people of one source, such as 1c, as its file says, over HTTP and with the import; once, or
again and again (`--every`). Each run is reported to the API, which shows the last ones.
"""

import asyncio
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from cli.client.http_client import ClientUpload, HttpClient, items, quoted
from cli.client.verbs import over_http, print_result
from cli.command import FAILURE, SUCCESS, Command, CommandFailed
from cli.commands.directory.csv_files import create_groups, declare_mail_contact, format_import, print_errors
from cli.commands.directory.sync_people import (
    Relations,
    SyncSource,
    check_cells,
    check_relations,
    groups_of,
    groups_of_others,
    missing_of,
    owned,
    table_of,
    table_of_left,
    with_groups,
)
from cli.processes.parts import UP_PART
from cli.processes.supervisor import announce
from cli.services.people_sources import (
    OWNS,
    SourcePlace,
    SourceTable,
    SyncRefused,
    declare_source,
    place_of,
    read_source,
)
from core.directory.csv_cells import escaped
from core.directory.importing.csv_rows import CsvRow, written_records
from core.errors import SetupError
from core.model.text.characters import counted

_POLL_SECONDS = 5.0
"""Pause between two checks whether the console has requested a run."""
_MOST_SHOWN = 20
_MOST_GROUPS = 5000
_NO_GROUP = "GROUP_NOT_FOUND"


def declare(parser: ArgumentParser) -> None:
    declare_source(parser)
    declare_mail_contact(parser)


async def run(api: HttpClient, arguments: Namespace) -> int:
    """Exit code 1 if the source is refused: then nothing was written."""
    place, every = place_of(arguments)
    if not every:
        return await SyncRun(api, arguments, place, dry_run=arguments.dry_run).report()
    if UP_PART in os.environ:
        announce()
    while True:
        await _attempt(SyncRun(api, arguments, place, every).report)
        await _wait(api, arguments, place, every)


async def _wait(api: HttpClient, arguments: Namespace, place: SourcePlace, every: int) -> None:
    """Wait for the next run; make those that the console asks for meanwhile."""
    end = time.monotonic() + every
    while (left := end - time.monotonic()) > 0:
        await asyncio.sleep(min(left, _POLL_SECONDS))

        async def run_requested() -> int:
            found = next((one for one in await _sources(api) if one["source"] == arguments.source), None)
            if not found or not (asked := found["requested"]):
                return SUCCESS
            return await SyncRun(api, arguments, place, every, dry_run=asked["dry_run"]).report(asked["at"])

        await _attempt(run_requested)


async def _attempt(run: Callable[[], Awaitable[int]]) -> None:
    """Make a run; print its fault, if any."""
    try:
        await run()
    except (CommandFailed, SetupError) as fault:
        print(f"ada: {fault}", file=sys.stderr, flush=True)


async def _sources(api: HttpClient) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = (await api.call("GET", "/v1/syncs"))["sources"]
    return found


class SyncRun:
    """One run of a sync."""

    def __init__(
        self, api: HttpClient, arguments: Namespace, place: SourcePlace, every: int = 0, *, dry_run: bool = False
    ) -> None:
        self._api, self._arguments, self._place = api, arguments, place
        self._dry_run = dry_run
        self._differing: list[str] = []
        self._result: dict[str, Any] = {"place": place.shown[:512], "every": every, "dry_run": dry_run}

    async def report(self, answers: int = 0) -> int:
        """Make the run and report its result. `answers`: when it was asked for, Unix ms. Raises CommandFailed if the
        source is refused.
        """
        self._result["answers"] = answers
        try:
            code = await self._run()
        except CommandFailed as fault:
            refused = fault if isinstance(fault, SyncRefused) else SyncRefused("failed", str(fault))
            self._result |= {"fault": refused.fault, "missing": refused.missing, "of": refused.of}
            self._result["detail"] = str(refused)[:512]
            await self._report()
            raise
        await self._report()
        return code

    async def _report(self) -> None:
        await self._api.call("PUT", f"/v1/syncs/{self._arguments.source}", self._result)

    async def _run(self) -> int:
        table = await read_source(self._place, self._arguments.source)
        rows = table.rows
        sources = {one["source"]: one["last"] for one in await _sources(self._api) if one["last"]}
        columns = {name: last["columns"] for name, last in sources.items()}
        people = [one async for one in items(self._api, "/v1/users", "users", {})]
        named_by = {name: set(last["groups"]) for name, last in sources.items()}
        source = SyncSource.of(self._arguments.source, people, rows, columns, named_by)
        missing = missing_of(source, rows, may_be_many=self._arguments.many_leave)
        named = self._named(rows)
        groups = named | named_by.get(source.name, set())
        members, owns = await self._members(source, rows, groups), await self._owned(source, rows, groups)
        self._differing = groups_of_others(source, members, groups_of(rows, "groups"))
        table = with_groups(table, lambda row, group: source.puts_into(source.person_of(row), group))
        members, wanted, owners = source.put_into(members), groups_of(table.rows, "groups"), dict(owned(source, rows))
        if not self._arguments.many_leave:
            check_cells(source, table)
            check_relations("groups", members, wanted)
            check_relations(OWNS, owns, owners)
        if not await self._import(source, table, missing):
            return FAILURE
        await self._leave_groups(source, members, wanted)
        await self._own_groups(owns, owners)
        kept = [one for one in rows[0].cells if one not in ("id", OWNS)]
        self._result |= {"columns": kept, "groups": sorted(named)[:_MOST_GROUPS]}
        return SUCCESS

    def _named(self, rows: Sequence[CsvRow]) -> set[str]:
        """Return the groups that the source names."""
        wanted = [*groups_of(rows, "groups").values(), *groups_of(rows, OWNS).values()]
        return set().union(*wanted) if wanted else set()

    async def _import(self, source: SyncSource, table: SourceTable, missing: Sequence[str]) -> bool:
        if table.titles and not self._dry_run:
            titles = [(n, [escaped(group), escaped(title)]) for n, (group, title) in enumerate(table.titles.items(), 2)]
            if not await self._upload("groups", written_records([(1, ["id", "title"]), *titles])):
                return False
        if self._dry_run and (new := await self._new_groups(table)):
            table = with_groups(table, lambda row, group: group not in new)
        content, differing = table_of(source, table)
        differing += self._differing
        creates = self._arguments.create_groups and not self._dry_run
        result = await self._upload("users", content, creates_groups=creates)
        if not result or (missing and not await self._upload("users", table_of_left(source, missing))):
            return False
        self._show_left(missing)
        for one in differing[:_MOST_SHOWN]:
            print(f"{one}: another source says something else, and its value stays", file=sys.stderr)
        changes = [
            {"id": one["id"], "created": one["created"], "fields": [of["field"] for of in one["fields"]]}
            for one in result["changes"][:_MOST_SHOWN]
        ]
        counts = {name: result[name] for name in ("created", "updated", "unchanged")}
        self._result |= {**counts, "left": len(missing), "changes": changes, "disagreements": differing[:_MOST_SHOWN]}
        return True

    async def _new_groups(self, table: SourceTable) -> set[str]:
        """Return the groups of people that a run would create before it adds people to them, and print them."""
        named = set().union(*groups_of(table.rows, "groups").values())
        creates = named if self._arguments.create_groups else named & table.titles.keys()
        known = {str(one["id"]) async for one in items(self._api, "/v1/groups", "groups", {})} if creates else set()
        if new := creates - known:
            shown = f"would create {counted(len(new), 'group')}: {', '.join(sorted(new)[:_MOST_SHOWN])}"
            print_result(self._arguments, {"new_groups": sorted(new)}, shown)
        return new

    async def _upload(self, kind: str, content: str, *, creates_groups: bool = False) -> Mapping[str, Any]:
        """Import a table; return its result, {} if it is refused, which is printed and noted."""
        query = {"kind": kind, **({"dry_run": "1"} if self._dry_run else {})}
        query |= {"mail_contact": "1"} if self._arguments.mail_contact and kind == "users" else {}
        upload = ClientUpload(content.encode(), "text/csv")
        if creates_groups:
            await create_groups(self._api, upload, query)
        result = await self._api.upload("/v1/import", upload, query)
        if "errors" in result:
            print_errors(result, self._arguments.json)
            first = result["errors"][0]
            detail = f"row {first['row']}: {first['message']} ({first['code']})"
            self._result |= {"fault": "refused", "detail": detail[:512]}
            return {}
        print_result(self._arguments, result, format_import(result))
        return result

    def _show_left(self, missing: Sequence[str]) -> None:
        if missing:
            shown = f"{counted(len(missing), 'person', 'people')} left: {', '.join(missing[:_MOST_SHOWN])}"
            print_result(self._arguments, {"left": missing}, shown)

    async def _members(self, source: SyncSource, rows: Sequence[CsvRow], groups: set[str]) -> Relations:
        """Return person of the source → its groups among these, also former ones; none if the source has no groups."""
        found: dict[str, set[str]] = {}
        owns = {str(person["id"]): own for own, person in source.known.items()}
        for group in sorted(groups) if groups_of(rows, "groups") else ():
            for member in await self._members_of(group):
                if own := owns.get(str(member["id"])):
                    found.setdefault(own, set()).add(group)
        return found

    async def _members_of(self, group: str) -> list[Mapping[str, Any]]:
        """Return the members of a group; none if it is deleted, or does not exist yet."""
        try:
            return [one async for one in items(self._api, f"/v1/groups/{quoted(group)}/members", "users", {})]
        except CommandFailed as fault:
            if _NO_GROUP not in str(fault):
                raise
            return []

    async def _owned(self, source: SyncSource, rows: Sequence[CsvRow], groups: set[str]) -> Relations:
        """Return person of the directory → groups among these to which it may write; none if the source has no
        owners.
        """
        wanted = dict(owned(source, rows))
        present = {str(one["id"]): one for one in (*source.known.values(), *source.others.values())}
        asked = {str(one["id"]) for one in source.known.values() if one["role"] in ("trainer", "staff", "admin")}
        asked |= {user for user, some in wanted.items() if some and user in present}
        found: dict[str, set[str]] = {}
        for user in sorted(asked) if wanted else ():
            owns = (await self._api.call("GET", "/v1/ownerships", query={"user": user}))["ownerships"]
            names = groups & {str(one["id"]) for one in owns if one["kind"] == "group"}
            found[user] = {one for one in names if source.puts_into(present[user], one)}
        return found

    async def _leave_groups(self, source: SyncSource, members: Relations, wanted: Relations) -> None:
        """Take people of the source out of its groups, also former ones, where it has them no more."""
        for own, groups in sorted(members.items()):
            user = str(source.known[own]["id"])
            for group in sorted(groups - wanted.get(own, set())):
                if not self._dry_run:
                    await self._api.call("DELETE", f"/v1/groups/{quoted(group)}/members/{quoted(user)}")
                print_result(self._arguments, {"left_group": group, "id": user}, f"{user} leaves the group {group}")

    async def _own_groups(self, owns: Relations, wanted: Relations) -> None:
        """Let people write to the groups that the source says, and no more to others of its groups."""
        pairs = [(user, group) for user, some in wanted.items() for group in sorted(some)]
        records = [(n, [escaped(user), "group", escaped(group)]) for n, (user, group) in enumerate(pairs, 2)]
        if self._dry_run or not wanted:
            return
        if records and not await self._upload("ownerships", written_records([(1, ["user", "kind", "id"]), *records])):
            raise SyncRefused("refused", "the owners of groups were not imported")
        for user, some in sorted(owns.items()):
            for group in sorted(some - wanted.get(user, set())):
                await self._api.call("DELETE", f"/v1/ownerships/{quoted(user)}/group/{quoted(group)}")
                print_result(self._arguments, {"disowned": group, "id": user}, f"{user} owns {group} no more")


COMMANDS: Mapping[str, Command] = {"sync": Command(declare, over_http(run))}
