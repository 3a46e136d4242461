"""The mode of a bot's process: it answers updates in dialogs, or puts events for scenarios."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bots.services import BotServices
from core.queue import Worker
from core.updates.ingress import Ingress
from couriers.telegram_bot.client import BotClient


@dataclass(frozen=True)
class Work:
    """Opened for one process. `ingress`: where updates go. `workers`: run as long as the process. `gatherer`: makes a
    worker that runs while this process gets the updates and has got all that waited at Telegram.
    """

    ingress: Ingress
    workers: Sequence[Worker]
    gatherer: Callable[[], Worker] | None = None


@dataclass(frozen=True)
class Mode:
    """`allowed`: the kinds of updates that the bot asks for. `open`: creates the tubes and returns the work."""

    allowed: Sequence[str]
    open: Callable[[BotClient, BotServices], Awaitable[Work]]
