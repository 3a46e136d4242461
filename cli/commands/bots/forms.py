"""The verb forms: what people have answered to the forms of the bots, as a table or as CSV, over HTTP."""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any

from cli.client.http_client import HttpClient, JsonObject, quoted
from cli.client.local_times import shown_moment, zone_of
from cli.client.verbs import over_http, print_result
from cli.command import SUCCESS, Command

_PATH = "/v1/forms"


def declare(parser: ArgumentParser) -> None:
    parser.add_argument("form", metavar="FORM", nargs="?", help="the name of a form; without it the forms are listed")
    parser.add_argument(
        "--person", metavar="CHANNEL:ID", help="print all that the bot remembers of a person: variables and answers"
    )
    parser.add_argument("--csv", action="store_true", help="print CSV with all rows")


async def run(api: HttpClient, arguments: Namespace) -> int:
    if arguments.person:
        print(json.dumps(await api.call("GET", f"/v1/variables?person={quoted(arguments.person)}"), ensure_ascii=False))
        return SUCCESS
    if not arguments.form:
        found = await api.call("GET", _PATH)
        return print_result(arguments, found, "\n".join(found["forms"]) or "no form has answers")
    if arguments.csv:
        async for chunk in api.download(f"{_PATH}/{quoted(arguments.form)}/answers.csv", {}):
            sys.stdout.write(chunk.decode())
        return SUCCESS
    table = await read(api, arguments.form)
    return print_result(arguments, table, "\n".join(aligned(cells(table, await zone_of(api, arguments)))))


async def read(api: HttpClient, form: str) -> JsonObject:
    path = f"{_PATH}/{quoted(form)}"
    table = page = await api.call("GET", path)
    while page["next"]:
        page = await api.call("GET", f"{path}?cursor={page['next']}")
        table["columns"] += [name for name in page["columns"] if name not in table["columns"]]
        table["rows"] += page["rows"]
    return {**table, "next": None}


def cells(table: JsonObject, zone: tzinfo) -> list[list[str]]:
    """Return the header and the rows, with times in `zone`."""
    head = ["person", "first", "last", *table["columns"]]
    rows = [
        [
            row["person"],
            *(shown_moment(datetime.fromisoformat(row[name]), zone) for name in ("first", "last")),
            *(_text(row["answers"].get(name)) for name in table["columns"]),
        ]
        for row in table["rows"]
    ]
    return [head, *rows]


def aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _text(value: Any) -> str:
    if value is None:
        return ""
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(shown.split())


COMMANDS: Mapping[str, Command] = {"forms": Command(declare, over_http(run))}
