"""The verb export: writes the directory, or the outcomes of a delivery, to a CSV file, over HTTP."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from cli.client.http_client import HttpClient
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
        dest="what", required=True, metavar="users|groups|members|supergroups|ownerships|outcomes"
    )
    for kind, text in KINDS.items():
        verbs.add_parser(kind, help=text)
    declare_key(verbs.add_parser("outcomes", help="who received a message over which channel, and who did not"))
    for subparser in verbs.choices.values():
        subparser.add_argument(
            "file", metavar="FILE", nargs="?", default=STDOUT, help="the file to write; without it standard output"
        )
        subparser.add_argument(
            "--excel", action="store_true", help="semicolons and a byte order mark, for Excel in Russia"
        )


async def run(api: HttpClient, arguments: Namespace) -> int:
    path, lines = _path(arguments), 0
    with written_whole(arguments.file) as file:
        async for chunk in api.download(path, {"excel": "1"} if arguments.excel else {}):
            file.write(chunk)
            lines += chunk.count(b"\n")
    if arguments.file != STDOUT:
        rows = lines - 1  # no cell has a line break
        result = {"file": arguments.file, "rows": rows}
        print_result(arguments, result, f"wrote {counted(rows, 'row')} to {arguments.file}")
    return SUCCESS


def _path(arguments: Namespace) -> str:
    if arguments.what == "outcomes":
        return f"{delivery_path(arguments.key)}/recipients.csv"
    return f"/v1/export/{arguments.what}"


COMMANDS: Mapping[str, Command] = {"export": Command(declare, over_http(run))}
