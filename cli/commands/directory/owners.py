"""The verb owner: shows and changes who may write to which groups and supergroups, over HTTP."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Mapping

from cli.client.http_client import HttpClient
from cli.client.pages import quoted
from cli.command import SUCCESS, WRONG_USAGE, Command, CommandFailed, add_json_option
from cli.commands.messages.deliveries import over_http, parse_id, print_result

_KINDS = ("group", "supergroup")


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="list|add|remove")
    list_parser = verbs.add_parser("list", help="list the groups and supergroups that a person may write to")
    add_parser = verbs.add_parser(
        "add", help="let a person write to a group, or to a supergroup of which the person owns every group"
    )
    remove_parser = verbs.add_parser(
        "remove", help="withdraw that; for a group also the person's supergroups that contain it"
    )
    for subparser in (list_parser, add_parser, remove_parser):
        subparser.add_argument("user", metavar="USER", help="the id of the person")
        add_json_option(subparser, default=SUPPRESS)
    for subparser in (add_parser, remove_parser):
        subparser.add_argument("object", metavar="group:ID|supergroup:ID", help="for example group:ИВТ-21")


async def run(api: HttpClient, arguments: Namespace) -> int:
    return await {"list": list_all, "add": add, "remove": remove}[arguments.action](api, arguments)


async def list_all(api: HttpClient, arguments: Namespace) -> int:
    """Return one line per group or supergroup, also with `--json`."""
    found = await api.call("GET", "/v1/ownerships", query={"user": arguments.user})
    for owned in found["ownerships"]:
        print_result(owned, arguments.json, f"{owned['kind']}:{owned['id']}")
    return SUCCESS


async def add(api: HttpClient, arguments: Namespace) -> int:
    return await _change(api, arguments, "PUT", "added")


async def remove(api: HttpClient, arguments: Namespace) -> int:
    return await _change(api, arguments, "DELETE", "removed")


async def _change(api: HttpClient, arguments: Namespace, method: str, done: str) -> int:
    kind, object_id = split_object(arguments.object)
    await api.call(method, "/v1/ownerships/" + "/".join(map(quoted, (arguments.user, kind, object_id))))
    owned = {"user": parse_id(arguments.user), "kind": kind, "id": parse_id(object_id)}
    print_result({done: owned}, arguments.json, f"{done} {arguments.object}")
    return SUCCESS


def split_object(given: str) -> tuple[str, str]:
    """Kind and id of `group:ИВТ-21`. Raises CommandFailed."""
    kind, _, object_id = given.partition(":")
    if kind not in _KINDS or not object_id:
        raise CommandFailed(f"{given!r} is neither group:ID nor supergroup:ID", WRONG_USAGE)
    return kind, object_id


COMMANDS: Mapping[str, Command] = {"owner": Command(declare, over_http(run))}
