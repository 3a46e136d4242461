"""The sandbox's own page and calls: the inbox, the rules, the counters, and what people do."""

from sandbox.web.server import WebServer

__all__ = ["WebServer"]
