"""What verbs have in common: a call of the API, and the printing of what it returns."""

import asyncio
import json
from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from cli.client.http_client import HttpClient, open_client
from cli.command import SUCCESS
from cli.settings.settings import load

Verb = Callable[[HttpClient, Namespace], Awaitable[int]]


def over_http(verb: Verb) -> Callable[[Namespace], int]:
    """Make a `run` function of a verb that calls the API."""

    async def call(arguments: Namespace) -> int:
        return await verb(await open_client(load().settings), arguments)

    return lambda arguments: asyncio.run(call(arguments))


def print_result(arguments: Namespace, result: Any, text: str) -> int:
    """Print a result: as JSON in one line with `--json`, as text for people without. Returns SUCCESS."""
    shown = json.dumps(msgspec.to_builtins(result), ensure_ascii=False) if arguments.json else text
    print(shown, flush=True)
    return SUCCESS
