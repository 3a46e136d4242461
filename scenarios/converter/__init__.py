"""Converts bots of Coreness 1.x into bots of Ada (C-101)."""

from scenarios.converter.conversion import Converted, convert

__all__ = ["Converted", "convert"]
