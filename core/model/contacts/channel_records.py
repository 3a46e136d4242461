"""The records of the channels, as core sees them.

Core lies below the couriers, so the registry is found by its name, when it is first asked. It does not depend on which
module of a process was imported first.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import NamedTuple, Protocol

_REGISTRY = "couriers.channel"


class AddressForm(NamedTuple):
    """`example` stands behind "An address of this channel is". `canonical`: returns the one form of all written forms
    of an address; what is no address stays as it is.
    """

    accepts: Callable[[str], object]
    example: str
    canonical: Callable[[str], str] = str


class RegisteredChannel(Protocol):
    """The fields of `couriers.channel.Channel` that core reads."""

    @property
    def address(self) -> AddressForm | None: ...
    @property
    def column_names(self) -> Sequence[str]: ...
    @property
    def title(self) -> str: ...
    @property
    def is_known_at_start(self) -> bool: ...


@cache
def channel_records() -> Mapping[str, RegisteredChannel]:
    """Return the record of each channel by its name, in the order of lists."""
    records: Mapping[str, RegisteredChannel] = import_module(_REGISTRY).channels()
    return records


def address_form(channel: str) -> AddressForm | None:
    """Return the form of the addresses of a channel; None if every printable text is one."""
    record = channel_records().get(channel)
    return record.address if record else None
