"""The verb owner: shows and changes who may write to which groups and supergroups, over HTTP."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from cli.client.http_client import HttpClient
from cli.client.pages import quoted
from cli.command import SUCCESS, WRONG_USAGE, Command, CommandFailed
from cli.commands.directory.of_person import declare_of_person, list_of_person
from cli.commands.messages.deliveries import over_http, parse_id, print_result

_KINDS = ("group", "supergroup")


def declare(parser: ArgumentParser) -> None:
    helps = {
        "list": "list the groups and supergroups that a person may write to",
        "add": "let a person write to a group, or to a supergroup of which the person owns every group",
        "remove": "withdraw that; for a group also the person's supergroups that contain it",
    }
    declare_of_person(parser, helps, "object", "group:ID|supergroup:ID", "group:ИВТ-21")


async def run(api: HttpClient, arguments: Namespace) -> int:
    return await {"list": list_all, "add": add, "remove": remove}[arguments.action](api, arguments)


async def list_all(api: HttpClient, arguments: Namespace) -> int:
    return await list_of_person(api, arguments, "ownerships", lambda one: f"{one['kind']}:{one['id']}")


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
    """Split `group:ИВТ-21` into kind and id. Raises CommandFailed."""
    kind, _, object_id = given.partition(":")
    if kind not in _KINDS or not object_id:
        raise CommandFailed(f"{given!r} is neither group:ID nor supergroup:ID", WRONG_USAGE)
    return kind, object_id


COMMANDS: Mapping[str, Command] = {"owner": Command(declare, over_http(run))}
