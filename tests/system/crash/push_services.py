"""The push service of the crash tests, behind a link, and the browsers that have subscribed there."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from core.directory import Directory
from core.directory.preferences import Subscriptions
from core.model.contacts.subscription import Subscription
from core.model.delivery import Recipient
from core.model.people import User
from core.redis.store import Store
from couriers.web_push.keys import FILE, load_key, public_key
from sandbox.web_push import PushServer
from sandbox.web_push.browser import Browser
from tests.support.stack import TENANT
from tests.system.crash.cuttable_link import CuttableLink

_CHANNEL = "web-push"


class LinkedPushServer(PushServer):
    """Whose address is that of a link."""

    link_port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.link_port}"


class PushServices:
    """A service whose browsers are subscribed as they are delivered to. `link`: to it, for all couriers."""

    def __init__(self, link: CuttableLink, directory: Path) -> None:
        self.link, self.server = link, LinkedPushServer()
        self.server.link_port = link.port
        self._directory = directory
        self._browsers: dict[str, Browser] = {}

    async def start(self) -> Mapping[str, str]:
        """Returns the settings of couriers."""
        await self.server.start()
        self.link.lead_new_connections_to(self.server.port)
        self._key = public_key(load_key("", self._directory))
        private = (self._directory / FILE).read_text()
        return {**self.server.environment, "ADA_WEB_PUSH_KEY": private, "ADA_PUBLIC_URL": "http://[::1]"}

    async def subscribe(self, store: Store, recipient: Recipient) -> Recipient:
        """Returns the recipient with the contact of a browser that has subscribed as it."""
        directory, browser = Directory(store), self.server.add_browser(self._key)
        subscription = Subscription(browser.endpoint, **browser.subscription["keys"])
        await directory.users.create(TENANT, User(recipient.id))
        await Subscriptions(store, directory).add(TENANT, recipient.id, _CHANNEL, subscription)
        self._browsers[recipient.contacts[_CHANNEL][0]] = browser
        return replace(recipient, contacts={**recipient.contacts, _CHANNEL: [subscription.address]})

    def copies(self) -> Counter[str]:
        """Returns address → number of notifications that its browser has shown."""
        return Counter({address: len(one.shown) for address, one in self._browsers.items() if one.shown})
