"""MAX through its Bot API with plain aiohttp.

It sends as the bot of ADA_MAX_TOKEN to people who have started that bot, and to groups that have it. An address is the
id of a person, or the negative id of a group. The table of MAX's answers is in `outcomes.py`.
"""

from pathlib import Path

from core.courier import Files, KnownIds
from couriers.max.courier import Max
from couriers.max.settings import Settings
from providers.max.client import Client, check_token

__all__ = ["Settings", "open"]


async def open(settings: Settings, directory: Path) -> Max:  # noqa: A001 - the interface's name
    """Check the token and return the courier. `directory` keeps the ids of dialogs.

    Raises SetupError if MAX cannot be reached or refuses the token.
    """
    client = Client(settings.token, settings.api_url, settings.timeout, settings.ca)
    try:
        me = await check_token(client)
    except BaseException:  # whatever it is, also a cancellation: the connections are closed
        await client.close()
        raise
    files = Files(settings.most_file_mb * 2**20, allow_private=settings.allow_private)
    return Max(str(me["user_id"]), client, files, KnownIds(directory / "dialogs"))
