"""Plugins of other packages and what they need: started in the order of their needs, each able to be missing (C-79).

Guarantees: a missing need, a cycle, a package that cannot be imported and a plugin that does not start are named in the
log; what depends on them is off, the rest runs. Neighbours: `scenarios.actions` finds action types; the process of the
scenarios starts the platform.
"""

from scenarios.plugins.plugin import Plugin
from scenarios.plugins.starting import Platform, started

__all__ = ["Platform", "Plugin", "started"]
