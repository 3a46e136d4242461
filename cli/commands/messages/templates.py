"""The verb templates: lists, shows, adds and deletes messages that are kept to be sent again, over HTTP."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Mapping

from cli.client.http_client import HttpClient, JsonObject, quoted
from cli.command import SUCCESS, Command, CommandFailed, add_json_option
from cli.commands.messages.deliveries import over_http, print_result

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
    for subparser in verbs.choices.values():
        add_json_option(subparser, default=SUPPRESS)


async def run(api: HttpClient, arguments: Namespace) -> int:
    return await {"list": list_all, "show": show, "add": add, "delete": delete}[arguments.action](api, arguments)


async def list_all(api: HttpClient, arguments: Namespace) -> int:
    """Print one line per template, also with `--json`."""
    for template in (await api.call("GET", _PATH))["templates"]:
        print_result(template, arguments.json, f"{template['id']}  {template['title']}")
    return SUCCESS


async def show(api: HttpClient, arguments: Namespace) -> int:
    templates: list[JsonObject] = (await api.call("GET", _PATH))["templates"]
    found = next((one for one in templates if one["id"] == arguments.id), None)
    if found is None:
        raise CommandFailed(f"there is no template {arguments.id}")
    print_result(found, arguments.json, f"{found['title']}\n\n{found['message'].get('text', '')}")
    return SUCCESS


async def add(api: HttpClient, arguments: Namespace) -> int:
    message = {"text": arguments.text, **({"channels": arguments.channel} if arguments.channel else {})}
    added = await api.call("POST", _PATH, {"title": arguments.title, "message": message})
    print_result(added, arguments.json, f"added {added['id']}  {added['title']}")
    return SUCCESS


async def delete(api: HttpClient, arguments: Namespace) -> int:
    await api.call("DELETE", f"{_PATH}/{quoted(arguments.id)}")
    print_result({"deleted": arguments.id}, arguments.json, f"deleted {arguments.id}")
    return SUCCESS


COMMANDS: Mapping[str, Command] = {"templates": Command(declare, over_http(run))}
