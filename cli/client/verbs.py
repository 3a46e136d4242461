"""Common parts of the verbs: a call of the API, the printing of its response, and of how far a command has come."""

import asyncio
import json
import sys
from argparse import Namespace
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from cli.client.http_client import HttpClient, open_client
from cli.command import SUCCESS
from cli.settings.settings import load
from core.redis.cancel_and_wait import cancel_and_wait

Item = TypeVar("Item")
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


def print_all(arguments: Namespace, found: Iterable[Item], line: Callable[[Item], str]) -> int:
    """Print one line per item, also with `--json`; to people who see none it is said on stderr. Returns SUCCESS."""
    printed = [print_result(arguments, item, line(item)) for item in found]
    return SUCCESS if printed else print_nothing(arguments)


async def print_stream(arguments: Namespace, found: AsyncIterable[Item], line: Callable[[Item], str]) -> int:
    """Print items as `print_all` does, each as soon as it is read."""
    is_empty = True
    async for item in found:
        is_empty = False
        print_result(arguments, item, line(item))
    return print_nothing(arguments) if is_empty else SUCCESS


def print_nothing(arguments: Namespace) -> int:
    if not arguments.json:
        print("nothing found", file=sys.stderr, flush=True)
    return SUCCESS


def parse_id(text: str) -> int | str:
    """Return an integer if the text is one in its usual form, else the text."""
    return int(text) if text.isascii() and text.isdecimal() and str(int(text)) == text else text


Line = Callable[[], Awaitable[str]]
"""Returns what is shown now; "" changes nothing."""


@asynccontextmanager
async def progress_line(line: Line, every: float, *, is_shown: bool = True) -> AsyncIterator[None]:
    """Show the line on stderr again and again until the block is left, if stderr is a terminal."""
    if not (is_shown and sys.stderr.isatty()):
        yield
        return
    showing = asyncio.create_task(_show_often(line, every))
    try:
        yield
    finally:
        await cancel_and_wait(showing)
        _show("")


async def _show_often(line: Line, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        if shown := await line():
            _show(shown)


def _show(text: str) -> None:
    print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
