"""The action types: one file each, with its declaration in `ACTION`. A new action is one file.

Installed packages add their own by entry points of the group `ada.actions`; each names an `ActionType`.
"""

from scenarios.actions.discovery import Actions, installed_actions, own_actions

__all__ = ["Actions", "installed_actions", "own_actions"]
