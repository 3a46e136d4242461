"""The verb templates: lists, shows, adds and deletes messages that are kept to be sent again, over HTTP."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping

from cli.client.http_client import HttpClient, JsonObject, quoted
from cli.client.verbs import over_http, print_all, print_result
from cli.command import Command, CommandFailed

_PATH = "/v1/templates"


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="list|show|add|delete", title="verbs")
    verbs.add_parser("list", help="list the templates of the tenant")
    verbs.add_parser("show", help="show the text of a template").add_argument("id")
    add_parser = verbs.add_parser("add", help="keep a text as a template")
    add_parser.add_argument("title")
    add_parser.add_argument("--text", required=True)
    add_parser.add_argument("--channel", action="append", help="send only through this channel; repeat for several")
    verbs.add_parser("delete", help="delete a template").add_argument("id")


async def run(api: HttpClient, arguments: Namespace) -> int:
    return await {"list": list_all, "show": show, "add": add, "delete": delete}[arguments.action](api, arguments)


async def list_all(api: HttpClient, arguments: Namespace) -> int:
    """Print one line per template, also with `--json`."""
    found: list[JsonObject] = (await api.call("GET", _PATH))["templates"]
    return print_all(arguments, found, lambda one: f"{one['id']}  {one['title']}")


async def show(api: HttpClient, arguments: Namespace) -> int:
    templates: list[JsonObject] = (await api.call("GET", _PATH))["templates"]
    found = next((one for one in templates if one["id"] == arguments.id), None)
    if found is None:
        raise CommandFailed(f"there is no template {arguments.id}")
    return print_result(arguments, found, f"{found['title']}\n\n{found['message'].get('text', '')}")


async def add(api: HttpClient, arguments: Namespace) -> int:
    message = {"text": arguments.text, **({"channels": arguments.channel} if arguments.channel else {})}
    added = await api.call("POST", _PATH, {"title": arguments.title, "message": message})
    return print_result(arguments, added, f"added {added['id']}  {added['title']}")


async def delete(api: HttpClient, arguments: Namespace) -> int:
    await api.call("DELETE", f"{_PATH}/{quoted(arguments.id)}")
    return print_result(arguments, {"deleted": arguments.id}, f"deleted {arguments.id}")


COMMANDS: Mapping[str, Command] = {"templates": Command(declare, over_http(run))}
