"""The failures that an acknowledged write survives."""

from enum import StrEnum


class Durability(StrEnum):
    """`local`: what the server itself survives. `replica`: the loss of any one server, because a replica has it."""

    LOCAL = "local"
    REPLICA = "replica"
