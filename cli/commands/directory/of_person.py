"""The common part of the verbs contact and owner: list, add and remove things of one person."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import Any

from cli.client.http_client import HttpClient
from cli.command import SUCCESS, add_json_option
from cli.commands.messages.deliveries import print_result


def declare_of_person(
    parser: ArgumentParser, helps: Mapping[str, str], argument: str, metavar: str, example: str
) -> None:
    """Declare the actions of a verb. `helps`: the help of list, add and remove; `argument`: what add and remove take
    besides the person.
    """
    verbs = parser.add_subparsers(dest="action", required=True, metavar="|".join(helps))
    for action, text in helps.items():
        subparser = verbs.add_parser(action, help=text)
        subparser.add_argument("user", metavar="USER", help="the id of the person")
        add_json_option(subparser, default=SUPPRESS)
        if action != "list":
            subparser.add_argument(argument, metavar=metavar, help=f"for example {example}")


async def list_of_person(
    api: HttpClient, arguments: Namespace, collection: str, line: Callable[[Mapping[str, Any]], str]
) -> int:
    """Print one line per object of `/v1/<collection>`, also with `--json`."""
    found = await api.call("GET", f"/v1/{collection}", query={"user": arguments.user})
    for one in found[collection]:
        print_result(one, arguments.json, line(one))
    return SUCCESS
