"""The bots of an installation: the folders below ADA_SCENARIOS, each with the settings of its own.

    ADA_SCENARIOS=bots    bots/school-5/{triggers.yaml, scenarios/, .env}    the bot of the tenant school-5; any number
    ADA_SCENARIOS=bot     bot/{triggers.yaml, scenarios/}                    the only bot, that of ADA_BOT_TENANT
    without it            the dialog of teachers                             the same

The .env of a folder has the accounts of its bot: ADA_BOT_TOKEN, ADA_VK_TOKEN, ADA_MAX_TOKEN and what belongs to them,
or ADA_BOT_TOKEN_FILE and so on; the accounts of the installation are those of ADA_BOT_TENANT. Other names are variables
for `${NAME}` in the YAML.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cli.settings.settings import Configuration, Settings, section_prefix
from cli.settings.sources import PREFIX, RawSetting, raw_settings, read_dotenv
from core.errors import SetupError
from couriers.channel import channels
from scenarios.bot.new_bot import TEACHER

ENVIRONMENT = ".env"
SIMULATED = ":sandbox"
"""The end of the tokens of bots that the sandbox simulates."""

_TENANT = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""As `core.admission.api_keys` names tenants."""
MayReceive = Callable[[str], bool]


@dataclass(frozen=True)
class BotFolder:
    """A bot. `own`: the settings of its .env; `environment`: for `${NAME}`, None for that of the process. `fault`: why
    the bot cannot run. `is_only`: there are no folders of bots, so what stops the bot ends the process.
    """

    tenant: str
    folder: Path
    common: Configuration = field(compare=False, repr=False)
    own: Mapping[str, RawSetting] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    fault: str = ""
    is_only: bool = False

    @property
    def configuration(self) -> Configuration:
        """The settings of this bot: those of the installation without its accounts, and its own. Raises SetupError."""
        return self.common.with_raw({**without_accounts(self.common.raw), **self.own})

    def has_account(self, channel: str) -> bool:
        return self.is_only or channels()[channel].account in self.own


def folder_of_bots(settings: Settings) -> Path | None:
    """Return ADA_SCENARIOS if it names a folder of bots, not a bot."""
    folder = settings.scenarios
    return folder if folder and folder.is_dir() and not is_bot(folder) else None


def is_bot(folder: Path) -> bool:
    return (folder / "scenarios").is_dir() or any(folder.glob("*.yaml"))


def tenants_of_bots(settings: Settings) -> list[str]:
    """Return the tenants whose people may write to a bot, that of the installation first."""
    bots = folder_of_bots(settings)
    folders = sorted(bots.iterdir()) if bots else []
    others = [one.name for one in folders if _TENANT.fullmatch(one.name) and one.is_dir() and is_bot(one)]
    return [settings.bot_tenant, *(one for one in others if one != settings.bot_tenant)]


def bot_folder(settings: Settings, tenant: str) -> Path | None:
    """Return the folder of a tenant's bot; None if it has none."""
    bots = folder_of_bots(settings)
    if bots is None:
        return (settings.scenarios or TEACHER) if tenant == settings.bot_tenant else None
    folder = bots / tenant
    return folder if _TENANT.fullmatch(tenant) and folder.is_dir() and is_bot(folder) else None


def read_bots(configuration: Configuration, may_receive: MayReceive = bool) -> dict[str, BotFolder]:
    """Return the bots by tenant. A folder whose name no tenant can have, or without files of a bot, is left out.
    `may_receive`: see `cli.settings.secrets`.
    """
    bots = folder_of_bots(configuration.settings)
    if bots is None:
        return only_bot(configuration)
    folders = sorted(one for one in bots.iterdir() if _TENANT.fullmatch(one.name) and one.is_dir())
    return {folder.name: read_bot(configuration, folder, may_receive) for folder in folders if is_bot(folder)}


def only_bot(configuration: Configuration) -> dict[str, BotFolder]:
    """Return the bot with the accounts of the installation."""
    tenant = configuration.settings.bot_tenant
    folder = bot_folder(configuration.settings, tenant) or Path()
    return {tenant: BotFolder(tenant, folder, configuration, accounts(configuration.raw), is_only=True)}


def read_senders(channel: str, configuration: Configuration, may_receive: MayReceive = bool) -> dict[str, BotFolder]:
    """Return the bots that may send in a channel, and the account of the installation if its tenant has no folder.
    The only one sends for all tenants.
    """
    if folder_of_bots(configuration.settings) is None or not channels()[channel].is_per_bot:
        return only_bot(configuration)
    tenant, own = configuration.settings.bot_tenant, accounts(configuration.raw)
    without_folder = {tenant: BotFolder(tenant, Path(), configuration, own)} if own else {}
    return {**without_folder, **read_bots(configuration, may_receive)}


def read_receivers(channel: str, configuration: Configuration, may_receive: MayReceive = bool) -> dict[str, BotFolder]:
    """Return the bots that may get updates in a channel."""
    if folder_of_bots(configuration.settings) is None or not channels()[channel].is_per_bot:
        return only_bot(configuration)
    return read_bots(configuration, may_receive)


def read_bot(configuration: Configuration, folder: Path, may_receive: MayReceive) -> BotFolder:
    tenant = folder.name
    try:
        written = dict(read_dotenv(folder / ENVIRONMENT))
        check_names(name for name in written if name.startswith(PREFIX))
        received = {name: text for name, text in written.items() if may_receive(name)}
        own = raw_settings(received, str(folder / ENVIRONMENT))
    except (SetupError, OSError, UnicodeDecodeError) as error:
        return BotFolder(tenant, folder, configuration, fault=f"{folder / ENVIRONMENT}: {error}")
    if tenant == configuration.settings.bot_tenant:
        own = {**accounts(configuration.raw), **own}
    variables = {name: text for name, text in written.items() if not name.startswith(PREFIX)}
    return BotFolder(tenant, folder, configuration, own, {**os.environ, **variables})


def tokens() -> Mapping[str, str]:
    """Return the setting that is the account, for the channels in which each bot can have an account of its own."""
    return {name: one.account for name, one in channels().items() if one.is_per_bot}


def check_names(names: Iterator[str]) -> None:
    """Raise SetupError for a setting that is not one of a bot."""
    for name in names:
        if not is_of_account(name):
            allowed = ", ".join(sorted(tokens().values()))
            raise SetupError(f"{name} is no setting of one bot; it may have {allowed} and what belongs to them")


def is_of_account(name: str) -> bool:
    """Return whether a setting belongs to the account of a bot."""
    of_installation = {setting for one in channels().values() for setting in one.of_installation}
    return name.startswith(tuple(map(section_prefix, tokens()))) and name.removesuffix("_FILE") not in of_installation


def accounts(raw: Mapping[str, RawSetting]) -> dict[str, RawSetting]:
    """Return the accounts among the settings of the installation."""
    return {name: raw[name] for name in tokens().values() if name in raw}


def without_accounts(raw: Mapping[str, RawSetting]) -> dict[str, RawSetting]:
    """Return the settings of the installation without the accounts of its bot."""
    return {name: one for name, one in raw.items() if name not in tokens().values()}


def channels_of_bots(bots: Collection[BotFolder]) -> list[str]:
    """Return the channels in which one of the bots has an account that is not simulated."""
    of_bots = {channel: [bot.own[name].text for bot in bots if name in bot.own] for channel, name in tokens().items()}
    return [channel for channel, own in of_bots.items() if any(not one.endswith(SIMULATED) for one in own)]
