"""Which process receives which setting: each one only its own secrets. Pure.

A process is named as `./ada up` names it: `serve`, `sandbox`, `valkey`, or the channel of a courier.
"""

from collections.abc import Callable, Mapping
from functools import partial

from cli.settings.settings import channels, section_prefix
from cli.settings.sources import PREFIX

COURIERS = "couriers"

READERS: Mapping[str, frozenset[str]] = {
    "ADA_REDIS_URL": frozenset({"serve", COURIERS}),
    "ADA_API_KEY": frozenset({"serve"}),
    "ADA_BOT_TOKEN": frozenset(),
    "ADA_SMTP_URL": frozenset(),
}
"""The secrets among the common settings, with their readers. All processes receive the other common settings."""


def receiver(process: str) -> Callable[[str], bool]:
    """`may_receive` for one process."""
    return partial(may_receive, process)


def may_receive(process: str, name: str) -> bool:
    """Whether the process receives this variable of the environment. The settings of a channel are for its courier."""
    if not name.startswith(PREFIX):
        return True
    if not is_common(name):
        return process in channels() and name.startswith(section_prefix(process))
    readers = READERS.get(name.removesuffix("_FILE"))
    return readers is None or (COURIERS if process in channels() else process) in readers


def is_common(name: str) -> bool:
    return not name.startswith(tuple(section_prefix(channel) for channel in channels()))
