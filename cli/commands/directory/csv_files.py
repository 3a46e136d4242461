"""The verbs import and export: CSV files of the directory, over HTTP.

`import` reads people, groups and their relations; while the API works, its progress is asked for and shown on stderr.
`export` writes the directory, or the outcomes of a delivery, to a CSV file, and a person's data to a file of lines of
JSON.
"""

import csv
import io
import json
import sys
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from cli.client.http_client import ClientUpload, HttpClient, JsonObject, quoted
from cli.client.verbs import over_http, parse_id, print_result, progress_line
from cli.command import FAILURE, SUCCESS, WRONG_USAGE, Command, CommandFailed
from cli.commands.messages.deliveries import declare_key, delivery_path
from cli.files import STDOUT, read_input, written_whole
from core.model.text.characters import counted
from delivery.http.options import Options

MOST_ROWS = 20
"""Rows whose changes are shown; `--json` has the others that the API reports."""

_WIDTH = 80
_INDENT = " " * 4
_NOTHING = "(none)"

Item = Mapping[str, Any]

KINDS = ("users", "contacts", "groups", "members", "supergroups", "ownerships")
_SECONDS_BETWEEN_READINGS = 0.5
_NO_GROUP = "GROUP_NOT_FOUND"
_NO_COLUMN = "COLUMN_UNKNOWN"


def summary(result: Item) -> str:
    """Return how many rows were new, changed something, or changed nothing."""
    counts = [f"{result[name]} {name}" for name in ("created", "updated", "unchanged")]
    note = " (only checked: nothing was written)" if result["dry_run"] else ""
    return f"{', '.join(counts)}{note}"


def format_import(result: Item) -> str:
    """Return the changes, if it is a dry run_import, the summary, and that people have no address for messages."""
    return "\n".join([*_change_lines(result), summary(result), *_not_mailed_lines(result)])


def _not_mailed_lines(result: Item) -> Iterator[str]:
    if count := result.get("not_mailed"):
        people = "1 person has" if count == 1 else f"{count:,} people have"
        yield f"{people} an address to sign in (email) but none to be written to (contacts.email):"
        yield "mails do not reach them; --mail-contact uses the address for messages, too"


def declare_mail_contact(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--mail-contact",
        action="store_true",
        help="write to people without a contact of e-mail at the address with which they sign in",
    )


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


def declare_import(parser: ArgumentParser) -> None:
    from core.directory.importing.csv_rows import ENCODINGS  # imports aiohttp and redis, which `export` does not need

    parser.add_argument("kind", choices=KINDS, help="what the rows are (docs/import.md shows the columns of each)")
    parser.add_argument(
        "file", metavar="FILE", help="a CSV or .xlsx file with a header, as Excel saves it; - reads standard input"
    )
    parser.add_argument("--encoding", choices=ENCODINGS, help="of a CSV file; without it, it is found out by its words")
    parser.add_argument("--sheet", metavar="NAME", help="of a workbook (default: the only one with values)")
    parser.add_argument(
        "--dry-run", action="store_true", help="only check the file and show what it would change; write nothing"
    )
    parser.add_argument(
        "--columns",
        metavar="NAMES",
        help="what each column is, in place of the header; - is not read: --columns=-,name,contacts.sms",
    )
    parser.add_argument(
        "--create-groups", action="store_true", help="first create the groups of the file that do not exist"
    )
    parser.add_argument(
        "--wrong-rows",
        metavar="FILE",
        help="import the right rows, and write the wrong ones with the reasons to a file",
    )
    declare_mail_contact(parser)


async def run_import(api: HttpClient, arguments: Namespace) -> int:
    """Exit code 1 if the file has errors: without `--wrong-rows` nothing was imported."""
    _check(arguments)
    query = {"kind": arguments.kind}
    query |= {name: given for name in ("encoding", "sheet", "columns") if (given := getattr(arguments, name))}
    query |= {"mail_contact": "1"} if arguments.mail_contact else {}
    upload = ClientUpload(read_input(arguments.file, Options().import_limit), "text/csv")
    if arguments.create_groups:
        await create_groups(api, upload, query)
    query |= {"dry_run": "1"} if arguments.dry_run else {}
    query |= {"wrong_rows": "leave_out"} if arguments.wrong_rows else {}
    async with progress_line(partial(progress, api), _SECONDS_BETWEEN_READINGS, is_shown=not arguments.json):
        result = await api.upload("/v1/import", upload, query)
    if "errors" in result:
        print_errors(result, arguments.json)
        return FAILURE
    print_result(arguments, result, format_import(result))
    return _write_wrong(arguments, result) if arguments.wrong_rows else SUCCESS


def _check(arguments: Namespace) -> None:
    """Check that no two options exclude each other. Raises CommandFailed."""
    if arguments.create_groups and arguments.dry_run:
        raise CommandFailed("--dry-run writes nothing, so it cannot have --create-groups", WRONG_USAGE)
    if arguments.mail_contact and arguments.kind != "users":
        raise CommandFailed("--mail-contact is for an import of users", WRONG_USAGE)
    if arguments.wrong_rows == STDOUT:
        raise CommandFailed("--wrong-rows needs the name of a file", WRONG_USAGE)


async def create_groups(api: HttpClient, upload: ClientUpload, query: Mapping[str, str]) -> None:
    """Create the groups that a check of the file misses. It reports a part of the errors only, so it is repeated."""
    check = {**query, "dry_run": "1", "wrong_rows": "leave_out"}
    while missing := _missing_groups(_all_errors(await api.upload("/v1/import", upload, check))):
        for name in missing:
            await api.call("POST", "/v1/groups", {"id": parse_id(name), "title": name})
        print(f"created {counted(len(missing), 'group')}: {', '.join(missing)}", file=sys.stderr)


def _all_errors(result: Item) -> list[Item]:
    return [*result.get("errors", ()), *(error for row in result.get("wrong", ()) for error in row["errors"])]


def _missing_groups(errors: Sequence[Item]) -> list[str]:
    return list(dict.fromkeys(one["value"] for one in errors if one["code"] == _NO_GROUP and one.get("value")))


def _table(header: Sequence[str], wrong: Sequence[Item]) -> bytes:
    """Return the wrong rows for Excel. Their last column has the reasons; an import does not read it."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=";")
    writer.writerow([*header, "Error"])
    for row in wrong:
        cells = [*row["cells"], *[""] * len(header)][: len(header)]
        writer.writerow([*cells, " ".join(one["message"] for one in row["errors"])])
    return text.getvalue().encode("utf-8-sig")


def _write_wrong(arguments: Namespace, result: Item) -> int:
    """Write the rows that are left out, also if there is none. Returns FAILURE if there is one."""
    wrong = result["wrong"]
    with written_whole(arguments.wrong_rows) as file:
        file.write(_table(result["header"], wrong))
    if wrong and not arguments.json:
        print(f"ada: {counted(len(wrong), 'wrong row')} left out: see {arguments.wrong_rows}", file=sys.stderr)
    return FAILURE if wrong else SUCCESS


def print_errors(problem: JsonObject, as_json: bool) -> None:
    """Print one line per error, and one for all groups that do not exist; on stdout with `--json`, else on stderr."""
    if as_json:
        print(json.dumps(problem, ensure_ascii=False))
        return
    missing = _missing_groups(problem["errors"])
    for error in problem["errors"]:
        if error["code"] == _NO_GROUP and error.get("value"):
            continue
        column = f", {error['column']}" if error["column"] else ""
        print(f"row {error['row']}{column}: {error['message']} ({error['code']})", file=sys.stderr)
    if any(error["code"] == _NO_COLUMN for error in problem["errors"]):
        print("--columns says what each column is, and leaves out columns", file=sys.stderr)
    if missing:
        names = f"{counted(len(missing), 'unknown group')} ({_NO_GROUP}): {', '.join(missing)}"
        print(f"{names}; --create-groups creates them", file=sys.stderr)
    print(f"ada: {problem['detail']}", file=sys.stderr)


async def progress(api: HttpClient) -> str:
    """Return how far the import is; "" if none runs."""
    found = await api.call("GET", "/v1/import")
    return "" if found["state"] == "idle" else f"{found['state']}: {found['done']:,} of {found['rows']:,} rows"


EXPORTED: Mapping[str, str] = {
    "users": "all people with their contacts",
    "groups": "all groups",
    "members": "who is in which group",
    "supergroups": "all sets of groups",
    "ownerships": "who may write to which group",
}


def declare_export(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(
        dest="what", required=True, metavar="users|groups|members|supergroups|ownerships|outcomes|person"
    )
    for kind, text in EXPORTED.items():
        verbs.add_parser(kind, help=text)
    declare_key(verbs.add_parser("outcomes", help="who received a message over which channel, and who did not"))
    person = verbs.add_parser("person", help="all that is stored of a person, for it: lines of JSON")
    person.add_argument("id", metavar="ID")
    person.add_argument("--reason", required=True, help="why you read what people wrote to others; it is logged")
    for name, subparser in verbs.choices.items():
        subparser.add_argument(
            "file", metavar="FILE", nargs="?", default=STDOUT, help="the file to write; without it standard output"
        )
        if name != "person":
            subparser.add_argument(
                "--excel", action="store_true", help="semicolons and a byte order mark, for Excel in Russia"
            )


async def run_export(api: HttpClient, arguments: Namespace) -> int:
    is_person = arguments.what == "person"
    path, lines = _path(arguments), 0
    query, reason = ({}, arguments.reason) if is_person else ({"excel": "1"} if arguments.excel else {}, "")
    with written_whole(arguments.file) as file:
        async for chunk in api.download(path, query, reason):
            file.write(chunk)
            lines += chunk.count(b"\n")
    if arguments.file != STDOUT:
        rows = lines if is_person else lines - 1  # no cell has a line break
        result = {"file": arguments.file, "rows": rows}
        print_result(arguments, result, f"wrote {counted(rows, 'row')} to {arguments.file}")
    return SUCCESS


def _path(arguments: Namespace) -> str:
    if arguments.what == "outcomes":
        return f"{delivery_path(arguments.key)}/recipients.csv"
    if arguments.what == "person":
        return f"/v1/users/{quoted(arguments.id)}/export"
    return f"/v1/export/{arguments.what}"


COMMANDS: Mapping[str, Command] = {
    "import": Command(declare_import, over_http(run_import)),
    "export": Command(declare_export, over_http(run_export)),
}
