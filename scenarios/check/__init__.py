"""Checks a bot before it runs (C-88): unknown names, actions and fields, wrong types, unreachable steps, loops.

Guarantee: every problem has file, line and column; any files give problems, never an exception. Neighbours:
`scenarios.loader` reads the files, `scenarios.actions` declares the actions.
"""

from scenarios.check.checking import Checked, check

__all__ = ["Checked", "check"]
