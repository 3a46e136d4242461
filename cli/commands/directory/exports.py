"""The verb export: writes the directory, or the outcomes of a delivery, to a CSV file, and a person's data to a file of
lines of JSON, over HTTP.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from cli.client.http_client import HttpClient, quoted
from cli.client.verbs import over_http, print_result
from cli.command import SUCCESS, Command
from cli.commands.messages.deliveries import declare_key, delivery_path
from cli.files import STDOUT, written_whole
from core.model.text.characters import counted

KINDS: Mapping[str, str] = {
    "users": "all people with their contacts",
    "groups": "all groups",
    "members": "who is in which group",
    "supergroups": "all sets of groups",
    "ownerships": "who may write to which group",
}


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(
        dest="what", required=True, metavar="users|groups|members|supergroups|ownerships|outcomes|person"
    )
    for kind, text in KINDS.items():
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


async def run(api: HttpClient, arguments: Namespace) -> int:
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


COMMANDS: Mapping[str, Command] = {"export": Command(declare, over_http(run))}
