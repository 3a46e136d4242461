"""The sandbox's inbox page and HTTP API: messages, rules, counters, and actions of recipients."""

from sandbox.web.server import WebServer

__all__ = ["WebServer"]
