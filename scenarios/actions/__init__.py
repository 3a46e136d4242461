"""The action types: one module for each subject, with an `ActionType` for each of its actions and the function that
executes it.

Installed packages add their own by entry points of the group `ada.actions`; each names an `ActionType`.
"""

from scenarios.actions.discovery import Actions, installed_actions, own_actions

__all__ = ["Actions", "installed_actions", "own_actions"]
