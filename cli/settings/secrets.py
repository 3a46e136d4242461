"""Which process receives which setting: each one only its own secrets. Pure.

A process is named as `./ada up` names it: `serve`, `sandbox`, `valkey`, `scenarios`, `jobs`, `sync`, the channel of a
courier, or `bot` and its channel.
"""

from collections.abc import Callable, Mapping
from functools import partial

from cli.settings.settings import common_names, section_prefix
from cli.settings.sources import PREFIX
from couriers.channel import channels, receiving

COURIERS, BOTS = "couriers", "bots"

BOT = "bot "
"""The prefix of the names of bots' processes."""

_READERS: Mapping[str, frozenset[str]] = {
    "ADA_REDIS_URL": frozenset({"serve", COURIERS, BOTS, "scenarios", "jobs"}),
    "ADA_API_KEY": frozenset({"serve", "sync"}),
    "ADA_METRICS_KEY": frozenset({"serve"}),
    "ADA_SECRET_KEY": frozenset({"serve", COURIERS, BOTS, "jobs", "scenarios"}),
    "ADA_MODEL_KEY": frozenset({"scenarios", "jobs"}),
    "ADA_SPEECH_KEY": frozenset({"scenarios"}),
}
"""The secrets among the common settings that are of no channel, with their readers."""


def secret_readers() -> Mapping[str, frozenset[str]]:
    """Return the secrets among the common settings, with their readers. All processes receive the other common
    settings.
    """
    of_channels = {name: readers for one in channels().values() for name, readers in one.readers.items()}
    return {**of_channels, **_READERS}


def receiver(process: str) -> Callable[[str], bool]:
    """Return `may_receive` for one process."""
    return partial(may_receive, process)


def may_receive(process: str, name: str) -> bool:
    """Return whether the process receives this variable of the environment. The settings of a channel are for its
    courier, and for a bot with the same account.
    """
    if not name.startswith(PREFIX):
        return True
    kind, channel = _kind_of(process)
    if not is_common(name):
        is_own = channel in channels() and name.startswith(section_prefix(channel))
        return is_own or (process == "serve" and name.removesuffix("_FILE") in _inbound_settings())
    readers = secret_readers().get(name.removesuffix("_FILE"))
    return readers is None or process in readers or kind in readers


def _kind_of(process: str) -> tuple[str, str]:
    """Return whether it is a courier or a bot, and the channel whose settings it reads; "" if there is none."""
    if process.startswith(BOT):
        return BOTS, section_of(process.removeprefix(BOT))
    return (COURIERS, process) if process in channels() else ("", "")


def _inbound_settings() -> set[str]:
    return {name for one in channels().values() for name in one.inbound_settings}


def section_of(bot: str) -> str:
    """Return the channel whose settings a bot reads; "" if there is none."""
    reading = {one.process: name for name, one in receiving().items() if one.reads_section}
    return reading.get(bot, "")


def is_common(name: str) -> bool:
    """Return whether it is no setting of a channel. ADA_BOT_TOKEN and ADA_BOT_API_URL are both: bots use them, too."""
    is_in_section = name.startswith(tuple(section_prefix(channel) for channel in channels()))
    return not is_in_section or name.removesuffix("_FILE") in common_names()
