"""The verb import: reads people, groups and their relations from a CSV file into the directory, over HTTP.

While the API works, its progress is asked for and shown on stderr.
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from functools import partial

from cli.client.format_import import format_import
from cli.client.http_client import ClientUpload, HttpClient, JsonObject
from cli.command import FAILURE, SUCCESS, Command
from cli.commands.messages.deliveries import over_http, print_result
from cli.files import read_input
from cli.progress_line import progress_line
from core.directory.importing.encodings import ENCODINGS
from delivery.http.options import Options

KINDS = ("users", "contacts", "groups", "members", "supergroups", "ownerships")

_SECONDS_BETWEEN_READINGS = 0.5


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS, help="what the rows are (docs/import.md shows the columns of each)")
    parser.add_argument(
        "file", metavar="FILE", help="a CSV file with a header, as Excel saves it; - reads standard input"
    )
    parser.add_argument("--encoding", choices=ENCODINGS, help="of the file; without it, it is found out by its words")
    parser.add_argument(
        "--dry-run", action="store_true", help="only check the file and show what it would change; write nothing"
    )


async def run(api: HttpClient, arguments: Namespace) -> int:
    """Exit code 1 if the file has errors: then nothing was imported."""
    query = {"kind": arguments.kind, **({"dry_run": "1"} if arguments.dry_run else {})}
    if arguments.encoding:
        query["encoding"] = arguments.encoding
    upload = ClientUpload(read_input(arguments.file, Options().import_limit), "text/csv")
    async with progress_line(partial(progress, api), _SECONDS_BETWEEN_READINGS, is_shown=not arguments.json):
        result = await api.upload("/v1/import", upload, query)
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


async def progress(api: HttpClient) -> str:
    """Return how far the import is; "" if none runs."""
    found = await api.call("GET", "/v1/import")
    return "" if found["state"] == "idle" else f"{found['state']}: {found['done']:,} of {found['rows']:,} rows"


COMMANDS: Mapping[str, Command] = {"import": Command(declare, over_http(run))}
