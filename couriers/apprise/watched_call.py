"""Calls the library apprise, and watches what it really sends: its own result is only true or false.

Guarantees for a call: each connection is one of urllib3 and goes to a public address unless private ones are allowed,
whatever a name resolves to (SSRF); after `abandon` nothing is sent; what the library logs is dropped, because it
contains the URL, which is a secret. Both ways to watch are documented: the audit events of Python `socket.connect` and
`http.client.send`, and the log of urllib3, which has a line for each response. If that line changed its form, a failure
would be unknown, and never a rejection.
"""

import logging
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from apprise import Apprise, AppriseAsset, NotifyBase, NotifyFormat, OverflowMode

from core.errors import SetupError
from core.model.public_addresses import TargetForbidden, is_public

_RESPONSE = re.compile(r'" ([1-5]\d\d) \S+$')
"""The end of the line of urllib3: `https://ntfy.sh:443 "POST / HTTP/1.1" 200 None`."""


class WatchedCall:
    """A call, and what it has sent and received. `statuses`: of all responses; `is_unanswered`: the last request has no
    response; `uses_http`: it tried to connect; `is_forbidden`: to what it must not.
    """

    def __init__(self, *, allow_private: bool) -> None:
        self.statuses: list[int] = []
        self.is_unanswered = False
        self.uses_http = False
        self.is_forbidden = False
        self._allow_private = allow_private
        self._is_abandoned = False
        self._lock = threading.Lock()

    @property
    def may_have_sent(self) -> bool:
        return self.is_unanswered or bool(self.statuses)

    def abandon(self) -> None:
        """Let nothing be sent from now on. What was sent until now is known afterwards."""
        with self._lock:
            self._is_abandoned = True

    def note_log(self, line: str) -> None:
        self.uses_http = True
        if found := _RESPONSE.search(line):
            self.statuses.append(int(found[1]))
            self.is_unanswered = False

    def check_connection(self, address: Any) -> None:
        """Raise TargetForbidden if nothing may connect there."""
        is_allowed = isinstance(address, tuple) and (self._allow_private or is_public(str(address[0])))
        if not (self.uses_http and is_allowed):
            self.is_forbidden = True
            raise TargetForbidden("the address is not public")

    def check_request(self) -> None:
        """Raise ConnectionAbortedError if nothing may be sent any more; else note that it is sent now."""
        with self._lock:
            if self._is_abandoned:
                raise ConnectionAbortedError("the attempt has ended")
            self.is_unanswered = True


_current: ContextVar[WatchedCall | None] = ContextVar("watched_call", default=None)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """Check an audit event of this process. An exception keeps Python from doing what the event announces."""
    if event not in ("socket.connect", "socket.sendto", "socket.sendmsg", "http.client.send"):
        return
    exchange = _current.get()
    if exchange is None:
        return
    if event == "http.client.send":
        exchange.check_request()
    else:
        exchange.check_connection(arguments[1] if event == "socket.connect" else None)


def _drop(record: logging.LogRecord) -> bool:
    """Return whether a record may be logged: none of a call."""
    exchange = _current.get()
    if exchange is None:
        return record.levelno >= logging.WARNING
    if record.name.startswith("urllib3"):
        exchange.note_log(record.getMessage())
    return False


@cache
def watch() -> None:
    """Begin to watch calls. It lasts as long as the process."""
    for name, level in (("urllib3.connectionpool", logging.DEBUG), ("apprise", logging.WARNING)):
        logging.getLogger(name).addFilter(_drop)
        logging.getLogger(name).setLevel(level)
    sys.addaudithook(_audit)


@contextmanager
def watching(exchange: WatchedCall) -> Iterator[None]:
    """Watch what this block does in its thread."""
    token = _current.set(exchange)
    try:
        yield
    finally:
        _current.reset(token)


def _asset() -> AppriseAsset:
    """Return the options of a call. Without a time limit the library calls in this thread, so that it is watched."""
    return AppriseAsset(
        app_id="Ada",
        async_mode=False,
        http_redirects=False,
        service_timeout=0,
        allow_templates=False,
        image_url_mask="",  # messages have no picture of Apprise
    )


def _service(url: str) -> NotifyBase | None:
    """Return the service of a URL, None if it is none."""
    found = Apprise.instantiate(url, asset=_asset(), suppress_exceptions=True)
    return found if isinstance(found, NotifyBase) else None


def service_names(rooms: Mapping[str, str]) -> dict[str, str]:
    """Return the service of each room, such as Mattermost. Raises SetupError, which never has a URL."""
    found = {}
    for name, url in rooms.items():
        with watching(WatchedCall(allow_private=False)):
            service = _service(url)
        if service is None:
            raise SetupError(f"ADA_APPRISE_ROOMS: the URL of {name} is none of a service that Apprise knows")
        if service.retry:
            raise SetupError(f"ADA_APPRISE_ROOMS: the URL of {name} must not have retry: Ada decides about repeats")
        found[name] = str(service.service_name)
    return found


def send(url: str, text: str, exchange: WatchedCall) -> bool:
    """Send a text to a room; return what the library returns. A long text goes in several messages."""
    with watching(exchange):
        service = _service(url)
        if service is None:
            return False
        if service.overflow_mode == OverflowMode.UPSTREAM:
            service.overflow_mode = OverflowMode.SPLIT
        calls = Apprise(asset=_asset())
        return calls.add(service) and bool(calls.notify(body=text, body_format=NotifyFormat.TEXT))
