"""Reads the bot in ADA_SCENARIOS for processes other than the one that runs its scenarios."""

import logging
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from cli.settings.bot_folders import has_many
from cli.settings.settings import Settings
from core.directory import Directory
from core.queue import QueueClient
from core.redis.store import Store
from core.updates.ingress import MAX_AGE, Ingress
from providers.inbound import dialogs_ingress, events_ingress
from scenarios.loader import load

log = logging.getLogger(__name__)


def open_ingress(store: Store, client: QueueClient, settings: Settings) -> Mapping[str, Ingress]:
    """Return the ways in by channel: for the scenarios of the bot in ADA_SCENARIOS, without it for the dialogs."""
    if settings.scenarios is None:
        return dialogs_ingress(client, settings.bot_tenant, Directory(store))
    return events_ingress(store, client, settings.bot_tenant, max_age(settings))


def max_age(settings: Settings) -> timedelta:
    """Return how old an event of the only bot may be; with several bots, of those that are not polled."""
    return max_age_of(None if has_many(settings) else settings.scenarios)


def max_age_of(folder: Path | None) -> timedelta:
    """Return how old an event may be at the start of the process (C-16): `event_manager.max_event_age_seconds` of the
    bot's settings.yaml. Raises SetupError if there is no such folder.
    """
    section = load(folder).bot.settings.get("event_manager") if folder else None
    seconds = section.get("max_event_age_seconds") if isinstance(section, dict) else None
    try:
        return MAX_AGE if seconds is None else timedelta(seconds=float(seconds))
    except (TypeError, ValueError, OverflowError):
        log.warning("settings.yaml: max_event_age_seconds is %r, and not a number of seconds", seconds)
        return MAX_AGE
