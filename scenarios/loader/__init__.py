"""Reads a bot's folder: YAML files with the place of every value → a frozen `Bot` and all problems.

Guarantees: any files give a bot and problems, never an exception; every problem has file, line and column; files of
other versions of the dialect load unchanged. Neighbours: `scenarios.bot.model` has the values; `scenarios.check`
searches for more.
"""

from scenarios.loader.files import Loaded, load
from scenarios.loader.reading import Problem

__all__ = ["Loaded", "Problem", "load"]
