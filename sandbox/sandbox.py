"""All provider servers and the inbox page, from `start` to `stop`."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.bot_api import BotApiServer
from sandbox.mail import SmtpServer
from sandbox.max import MaxServer
from sandbox.models import KEY, MODEL, ModelsServer
from sandbox.sms.providers import SmsProvidersServer
from sandbox.sms.server import PASSWORD, SENDER, USERNAME, SmsServer
from sandbox.state import SandboxState
from sandbox.telegram import TelegramServer
from sandbox.vacancies import VacanciesServer
from sandbox.vk import VkServer
from sandbox.web import WebServer

TELEGRAM_API_ID = "4242"
TELEGRAM_API_HASH = "0123456789abcdef0123456789abcdef"
TELEGRAM_BOT_TOKEN = "4242:sandbox"


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of the servers; 0 takes a free one."""

    web: int = 0
    telegram: int = 0
    vk: int = 0
    sms: int = 0
    bot_api: int = 0
    max: int = 0
    sms_providers: int = 0
    smtp: int = 0
    models: int = 0
    vacancies: int = 0


class Sandbox:
    """All providers, with one shared state. `directory` keeps Telegram's sessions. `inbound_urls`: channel → the URL
    that its provider calls for each message of a person.
    """

    def __init__(
        self,
        directory: Path,
        host: str = "127.0.0.1",
        ports: Ports | None = None,
        inbound_urls: Mapping[str, str] | None = None,
        console: str = "",
    ) -> None:
        ports = ports or Ports()
        self.state = SandboxState()
        self.host = host
        self._services = directory / "services.yaml"
        self.telegram = TelegramServer(self.state, directory / "telegram", host, ports.telegram)
        self.vk = VkServer(self.state, host, ports.vk)
        self.sms = SmsServer(self.state, host, ports.sms, inbound_url=(inbound_urls or {}).get("sms"))
        self.sms_providers = SmsProvidersServer(self.state, host, ports.sms_providers)
        self.bot_api = BotApiServer(self.state, host, ports.bot_api)
        self.max = MaxServer(self.state, host, ports.max)
        self.mail = SmtpServer(self.state, host, ports.smtp)
        self.models = ModelsServer(self.state, host, ports.models)
        self.vacancies = VacanciesServer(self.state, host, ports.vacancies)
        self.web = WebServer(
            self.state,
            self.telegram,
            self.vk,
            self.sms,
            self.bot_api,
            self.max,
            self.mail,
            lambda: self.environment,
            console,
            host,
            ports.web,
        )
        chats = (self.telegram, self.vk, self.bot_api, self.max)
        providers = (*chats, self.sms, self.sms_providers, self.mail, self.models, self.vacancies)
        self._servers = (*providers, self.web)
        self.further: dict[str, str] = {}
        """The settings of simulators that run beside it."""

    async def start(self) -> None:
        """Listen on all ports. Raises OSError if one is taken; then it listens on none."""
        try:
            for server in self._servers:
                await server.start()
            self._services.parent.mkdir(parents=True, exist_ok=True)
            self._services.write_text(self.vacancies.sign_in)
        except OSError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Close everything; safe to repeat."""
        for server in reversed(self._servers):
            await server.stop()

    @property
    def page_url(self) -> str:
        """Return the URL of the inbox page."""
        return self.web.url

    @property
    def environment(self) -> dict[str, str]:
        """Return the settings that make a client use this sandbox instead of the providers, by name."""
        return {
            **self.further,
            "ADA_TELEGRAM_SERVER": f"{self.host}:{self.telegram.port}",
            "ADA_TELEGRAM_SERVER_KEY": self.telegram.public_key_pem,
            "ADA_TELEGRAM_API_ID": TELEGRAM_API_ID,
            "ADA_TELEGRAM_API_HASH": TELEGRAM_API_HASH,
            "ADA_TELEGRAM_BOT_TOKEN": TELEGRAM_BOT_TOKEN,
            "ADA_VK_API_URL": self.vk.url,
            "ADA_VK_TOKEN": self.vk.token,
            "ADA_VK_LONG_POLL": "1",
            "ADA_SMS_URL": self.sms.url,
            "ADA_SMS_USERNAME": USERNAME,
            "ADA_SMS_PASSWORD": PASSWORD,
            "ADA_SMS_FROM": SENDER,
            "ADA_BOT_TOKEN": self.bot_api.token,
            "ADA_BOT_API_URL": self.bot_api.url,
            "ADA_MAX_TOKEN": self.max.token,
            "ADA_MAX_API_URL": self.max.url,
            "ADA_SMTP_URL": self.mail.url,
            "ADA_SIGN_IN": str(self._services),
            "HUNT_URL": self.vacancies.url,
            "ADA_MODEL_URL": self.models.url,
            "ADA_MODEL_KEY": KEY,
            "ADA_MODEL_NAME": MODEL,
            "ADA_SPEECH": synthesis(),
            "ADA_TRANSCRIPTION": "openai",
            "ADA_SPEECH_URL": self.models.url,
            "ADA_SPEECH_KEY": KEY,
        }

    @property
    def with_profile(self) -> dict[str, dict[str, str]]:
        """Return channel → its settings for a provider that a profile describes."""
        return {"sms": {"ADA_SMS_URL": self.sms_providers.url}}


def synthesis() -> str:
    """Return what makes speech beside a sandbox: the programs of this machine; a tone of the sandbox if they are
    missing."""
    return "espeak" if shutil.which("espeak-ng") and shutil.which("ffmpeg") else "openai"
