"""Plays actions for a dry run: samples in place of what providers and the store return (C-89). `scenarios.check` plays
the bot; `scenarios.testing` runs it.
"""

from scenarios.rehearsal.step import RehearsedStep, play

__all__ = ["RehearsedStep", "play"]
