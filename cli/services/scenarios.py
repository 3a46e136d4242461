"""Reads the bot for processes other than the one that runs its scenarios."""

import logging
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from cli.settings.bot_folders import bot_folder
from cli.settings.settings import Configuration, Settings
from core.queue import QueueClient
from core.redis.store import Store
from core.updates.ingress import MAX_AGE, Ingress
from couriers.inbound import events_ingress
from scenarios.bot.model import EVENTS_SECTIONS, MAX_EVENT_AGE
from scenarios.bot.times import read_duration
from scenarios.execution.secrets import secret_variables
from scenarios.loader import load

log = logging.getLogger(__name__)


def known_secrets(configuration: Configuration) -> Mapping[str, str]:
    """Return the secrets of this process that must not be shown, also those of settings.yaml, .env and files."""
    own = {name: setting.text for name, setting in configuration.raw.items()}
    return secret_variables({**os.environ, **own})


def open_ingress(store: Store, client: QueueClient, settings: Settings) -> Mapping[str, Ingress]:
    return events_ingress(store, client, settings.bot_tenant, max_age(settings))


def max_age(settings: Settings) -> timedelta:
    """Return how old an event of the bot of ADA_BOT_TENANT may be."""
    return max_age_of(bot_folder(settings, settings.bot_tenant))


def max_age_of(folder: Path | None) -> timedelta:
    """Return how old an event may be at the start of the process (C-16): `max_event_age_seconds` in the section
    `event_manager` or `tg_event_bot` of the bot's settings.yaml. Raises SetupError if there is no such folder.
    """
    sections = [load(folder).bot.settings.get(name) for name in EVENTS_SECTIONS] if folder else []
    written = (one[MAX_EVENT_AGE] for one in sections if isinstance(one, dict) and MAX_EVENT_AGE in one)
    given = next(written, None)
    found = MAX_AGE if given is None else read_duration(given)
    if found is None:
        log.warning("settings.yaml: max_event_age_seconds is %r, and not a number of seconds", given)
    return MAX_AGE if found is None else found
