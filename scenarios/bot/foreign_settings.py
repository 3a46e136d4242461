"""Settings of Coreness that do not belong to an action: sections of settings.yaml, and what Ada uses of each."""

from collections.abc import Mapping

MAX_EVENT_AGE = "max_event_age_seconds"
"""The greatest age of an event at the start of the process."""

STATE_EXPIRE = "state_expire"
"""Duration of a state of the action `user` without `expire`, in seconds or as a duration."""

EVENTS_SECTIONS = ("event_manager", "tg_event_bot")
STATES_SECTION = "user_manager"

FOREIGN: Mapping[str, str] = {**dict.fromkeys(EVENTS_SECTIONS, MAX_EVENT_AGE), STATES_SECTION: STATE_EXPIRE}
"""Section → its only setting that Ada uses."""
