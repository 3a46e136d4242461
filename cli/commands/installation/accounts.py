"""The verb accounts: lists the accounts of the channels, and sets their settings. It calls a running Ada over HTTP, and
never prints a stored text.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from getpass import getpass

from cli.client.http_client import HttpClient, JsonObject
from cli.client.local_times import shown_moment, zone_of
from cli.client.verbs import over_http, print_all, print_result
from cli.command import Command, CommandFailed


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", metavar="set|remove")
    for name, text in (
        ("set", "store settings of an account, encrypted; each text is asked for, or is a line of the standard input"),
        ("remove", "remove stored settings of an account"),
    ):
        one = verbs.add_parser(name, help=text)
        one.add_argument("channel")
        one.add_argument("settings", nargs="+", metavar="SETTING", help="such as ADA_VK_TOKEN")


async def run(api: HttpClient, arguments: Namespace) -> int:
    accounts = (await api.call("GET", "/v1/accounts"))["accounts"]
    if not arguments.action:
        zone = await zone_of(api, arguments)
        return print_all(arguments, accounts, lambda one: describe(one, zone))
    texts = read_texts(arguments.settings) if arguments.action == "set" else [""] * len(arguments.settings)
    return await change(api, arguments, accounts, texts)


async def change(api: HttpClient, arguments: Namespace, accounts: Sequence[JsonObject], texts: Sequence[str]) -> int:
    channel = arguments.channel
    version = next((one["version"] for one in accounts if one["channel"] == channel), 0)
    body = {"version": version, "settings": dict(zip(arguments.settings, texts, strict=True))}
    changed = await api.call("PATCH", f"/v1/accounts/{channel}", body)
    done = "stored, encrypted; the courier signs in with it" if arguments.action == "set" else "removed"
    return print_result(arguments, changed, f"{channel}: {' and '.join(arguments.settings)} {done}")


def read_texts(names: Sequence[str]) -> Sequence[str]:
    """Return a text for each setting; never from the command line, which other users of the machine can read."""
    if sys.stdin.isatty():
        texts = [getpass(f"{name}: ").strip() for name in names]
    else:
        texts = [sys.stdin.readline().strip() for _ in names]
    if missing := [name for name, text in zip(names, texts, strict=True) if not text]:
        raise CommandFailed(f"no text for {' and '.join(missing)}")
    return texts


def describe(account: JsonObject, zone: tzinfo) -> str:
    sources = [f"{one['name']} from {one['source']}" for one in account["settings"] if one["source"]]
    lines = [f"{account['channel']:<14} {account['account'] or '-'}", ", ".join(sources) or "not set up"]
    if account["answered"]:
        answered = shown_moment(datetime.fromisoformat(account["answered"]), zone)
        lines.append(f"{answered}  {account['answer']}")
    return f"\n{'':<15}".join(lines)


COMMANDS: Mapping[str, Command] = {"accounts": Command(declare, over_http(run))}
