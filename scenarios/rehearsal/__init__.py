"""Plays actions without Redis and providers: a memory in place of the store, and samples in place of a provider's
responses (C-89, C-99). `scenarios.check` plays the bot.
"""

from scenarios.rehearsal.memory import Memory
from scenarios.rehearsal.step import RehearsedStep, play

__all__ = ["Memory", "RehearsedStep", "play"]
