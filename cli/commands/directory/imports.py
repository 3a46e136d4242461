"""The verb import: reads people, groups and their relations from a CSV file into the directory, over HTTP.

While the API works, its progress is asked for and shown on stderr.
"""

import asyncio
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp

from cli.client.format_import import format_import
from cli.client.http_client import HttpClient, JsonObject, Upload
from cli.command import FAILURE, SUCCESS, Command
from cli.commands.messages.deliveries import over_http, print_result
from cli.read_input import read_input
from core.redis.cancel_and_wait import cancel_and_wait
from delivery.http.options import Options

KINDS = ("users", "contacts", "groups", "members", "supergroups", "ownerships")

_SECONDS_BETWEEN_LOOKS = 0.5
_TIMEOUT = aiohttp.ClientTimeout(total=600)


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS, help="what the rows are (docs/import.md shows the columns of each)")
    parser.add_argument(
        "file", metavar="FILE", help="a CSV file with a header, as Excel saves it; - reads standard input"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only check the file and show what it would change; write nothing"
    )


async def run(api: HttpClient, arguments: Namespace) -> int:
    """Exit code 1 if the file has errors: then nothing was imported."""
    query = {"kind": arguments.kind, **({"dry_run": "1"} if arguments.dry_run else {})}
    upload = Upload(read_input(arguments.file, Options().import_limit), "text/csv")
    async with shown_progress(api, sys.stderr.isatty() and not arguments.json):
        result = await api.upload("/v1/import", upload, query, _TIMEOUT)
    if "errors" in result:
        print_errors(result, arguments.json)
        return FAILURE
    print_result(result, arguments.json, format_import(result))
    return SUCCESS


def print_errors(problem: JsonObject, as_json: bool) -> None:
    """Print one line per error; on stdout with `--json`, else on stderr."""
    if as_json:
        print(json.dumps(problem, ensure_ascii=False))
        return
    for error in problem["errors"]:
        column = f", {error['column']}" if error["column"] else ""
        print(f"row {error['row']}{column}: {error['message']} ({error['code']})", file=sys.stderr)
    print(f"ada: {problem['detail']}", file=sys.stderr)


@asynccontextmanager
async def shown_progress(api: HttpClient, is_shown: bool) -> AsyncIterator[None]:
    """Shows the progress in one line of the terminal until the block is left."""
    showing = asyncio.create_task(show_progress(api)) if is_shown else None
    try:
        yield
    finally:
        if showing:
            await cancel_and_wait(showing)
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


async def show_progress(api: HttpClient) -> None:
    while True:
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        found = await api.call("GET", "/v1/import")
        if found["state"] != "idle":
            print(f"\r\x1b[K{progress_line(found)}", end="", file=sys.stderr, flush=True)


def progress_line(found: JsonObject) -> str:
    return f"{found['state']}: {found['done']:,} of {found['rows']:,} rows"


COMMANDS: Mapping[str, Command] = {"import": Command(declare, over_http(run))}
