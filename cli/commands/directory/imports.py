"""The verb import: reads people, groups and their relations from a CSV file into the directory, over HTTP.

While the API works, its progress is asked for and shown on stderr.
"""

import json
import sys
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from cli.client.http_client import ClientUpload, HttpClient, JsonObject
from cli.client.verbs import over_http, print_result
from cli.command import FAILURE, Command
from cli.files import read_input
from cli.progress_line import progress_line
from core.directory.importing.encodings import ENCODINGS
from delivery.http.options import Options

MOST_ROWS = 20
"""Rows whose changes are shown; `--json` has the others that the API reports."""

_WIDTH = 80
_INDENT = " " * 4
_NOTHING = "(none)"

Item = Mapping[str, Any]

KINDS = ("users", "contacts", "groups", "members", "supergroups", "ownerships")
_SECONDS_BETWEEN_READINGS = 0.5


def summary(result: Item) -> str:
    """Return how many rows were new, changed something, or changed nothing."""
    counts = [f"{result[name]} {name}" for name in ("created", "updated", "unchanged")]
    note = " (only checked: nothing was written)" if result["dry_run"] else ""
    return f"{', '.join(counts)}{note}"


def format_import(result: Item) -> str:
    """Return the changes, if it is a dry run, and the summary."""
    return "\n".join([*_change_lines(result), summary(result)])


def _change_lines(result: Item) -> Iterator[str]:
    shown = result["changes"][:MOST_ROWS]
    for change in shown:
        yield f"row {change['row']}: {change['id']}{' is new' if change['created'] else ''}"
        yield from _field_lines(change)
    more = result["more_changes"] + len(result["changes"]) - len(shown)
    if more:
        yield f"and {more} more"


def _field_lines(change: Item) -> Iterator[str]:
    if change["created"]:
        values = ", ".join(f"{one['field']} {one['new']}" for one in change["fields"])
        yield from textwrap.wrap(values, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)
        return
    for one in change["fields"]:
        yield f"{_INDENT}{one['field']}: {one['old'] or _NOTHING} → {one['new'] or _NOTHING}"


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS, help="what the rows are (docs/import.md shows the columns of each)")
    parser.add_argument(
        "file", metavar="FILE", help="a CSV or .xlsx file with a header, as Excel saves it; - reads standard input"
    )
    parser.add_argument("--encoding", choices=ENCODINGS, help="of a CSV file; without it, it is found out by its words")
    parser.add_argument("--sheet", metavar="NAME", help="of a workbook (default: the only one with values)")
    parser.add_argument(
        "--dry-run", action="store_true", help="only check the file and show what it would change; write nothing"
    )


async def run(api: HttpClient, arguments: Namespace) -> int:
    """Exit code 1 if the file has errors: then nothing was imported."""
    query = {"kind": arguments.kind, **({"dry_run": "1"} if arguments.dry_run else {})}
    query |= {name: given for name in ("encoding", "sheet") if (given := getattr(arguments, name))}
    upload = ClientUpload(read_input(arguments.file, Options().import_limit), "text/csv")
    async with progress_line(partial(progress, api), _SECONDS_BETWEEN_READINGS, is_shown=not arguments.json):
        result = await api.upload("/v1/import", upload, query)
    if "errors" in result:
        print_errors(result, arguments.json)
        return FAILURE
    return print_result(arguments, result, format_import(result))


def print_errors(problem: JsonObject, as_json: bool) -> None:
    """Print one line per error; on stdout with `--json`, else on stderr."""
    if as_json:
        print(json.dumps(problem, ensure_ascii=False))
        return
    for error in problem["errors"]:
        column = f", {error['column']}" if error["column"] else ""
        print(f"row {error['row']}{column}: {error['message']} ({error['code']})", file=sys.stderr)
    print(f"ada: {problem['detail']}", file=sys.stderr)


async def progress(api: HttpClient) -> str:
    """Return how far the import is; "" if none runs."""
    found = await api.call("GET", "/v1/import")
    return "" if found["state"] == "idle" else f"{found['state']}: {found['done']:,} of {found['rows']:,} rows"


COMMANDS: Mapping[str, Command] = {"import": Command(declare, over_http(run))}
