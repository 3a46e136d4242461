"""The verb webhook: adds, lists, removes, tests and replays webhooks. It calls a running Ada over HTTP."""

from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Mapping

from cli.client.http_client import HttpClient, JsonObject, quoted
from cli.client.local_times import in_zone, zone_of
from cli.client.verbs import over_http, print_all, print_result
from cli.command import FAILURE, SUCCESS, Command
from core.model.text.characters import counted
from core.webhooks.webhook import EventType

PATH = "/v1/webhooks"
EVENTS = [str(event) for event in EventType]


def declare(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="action", required=True, metavar="add|list|remove|test|attempts|replay")
    add_parser = verbs.add_parser("add", help="add a webhook; its secret is shown once")
    add_parser.add_argument("url")
    add_parser.add_argument(
        "--event",
        action="append",
        choices=EVENTS,
        help="what is sent (default: all); repeat for several",
    )
    verbs.add_parser("list", help="list the webhooks, without their secrets")
    for name, text in (
        ("remove", "remove a webhook and the messages that wait for it"),
        ("test", "send a test message at once and show the response"),
        ("attempts", "show what waits for a webhook, and the last attempts"),
        ("replay", "send the messages again that were given up"),
    ):
        verbs.add_parser(name, help=text).add_argument("id")


async def run(api: HttpClient, arguments: Namespace) -> int:
    return await ACTIONS[arguments.action](api, arguments)


async def add(api: HttpClient, arguments: Namespace) -> int:
    created = await api.call("POST", PATH, {"url": arguments.url, "events": arguments.event or EVENTS})
    text = f"{describe(created)}\n\n  {created['secret']}\n\nThe secret is shown only this time."
    return print_result(arguments, created, text)


async def list_all(api: HttpClient, arguments: Namespace) -> int:
    """Return one line per webhook, also with `--json`."""
    zone, found = await zone_of(api, arguments), (await api.call("GET", PATH))["webhooks"]
    return print_all(arguments, found, lambda one: describe(in_zone(one, zone)))


async def remove(api: HttpClient, arguments: Namespace) -> int:
    removed = await api.call("DELETE", path_of(arguments))
    return print_result(
        arguments, removed, f"removed {removed['id']}, and {counted(removed['dropped'], 'message')} that waited"
    )


async def test(api: HttpClient, arguments: Namespace) -> int:
    """Exit code 0 if the receiver accepted the message."""
    attempt = await api.call("POST", f"{path_of(arguments)}/test")
    print_result(arguments, attempt, describe_attempt(in_zone(attempt, await zone_of(api, arguments))))
    return SUCCESS if attempt["succeeded"] else FAILURE


async def attempts(api: HttpClient, arguments: Namespace) -> int:
    state = await api.call("GET", f"{path_of(arguments)}/attempts")
    shown = in_zone(state["attempts"], await zone_of(api, arguments))
    lines = [f"waiting: {counted(state['waiting'], 'message')}; given up: {state['dead_letters']}"]
    return print_result(arguments, state, "\n".join([*lines, *map(describe_attempt, shown)]))


async def replay(api: HttpClient, arguments: Namespace) -> int:
    result = await api.call("POST", f"{path_of(arguments)}/replay")
    return print_result(arguments, result, f"sent again: {counted(result['replayed'], 'message')}")


def path_of(arguments: Namespace) -> str:
    return f"{PATH}/{quoted(arguments.id)}"


def describe(webhook: JsonObject) -> str:
    disabled = f"  disabled at {webhook['disabled_at']}" if webhook["disabled_at"] else ""
    return f"{webhook['id']}  {webhook['url']}  {', '.join(webhook['events'])}{disabled}"


def describe_attempt(attempt: JsonObject) -> str:
    result = "accepted" if attempt["succeeded"] else attempt["error"]
    status = attempt["status"] or "no response"
    return f"{attempt['at']}  {attempt['webhook_id']}  {attempt['type']}  attempt {attempt['attempt']}: {result} " \
        f"({status}, {attempt['duration_ms']} ms)"  # fmt: skip


ACTIONS: Mapping[str, Callable[[HttpClient, Namespace], Awaitable[int]]] = {
    "add": add,
    "list": list_all,
    "remove": remove,
    "test": test,
    "attempts": attempts,
    "replay": replay,
}
COMMANDS: Mapping[str, Command] = {"webhook": Command(declare, over_http(run))}
