"""A push service, and browsers that have subscribed at it (RFC 8030, 8291, 8292): what Firebase and Mozilla run, with a
page that shows what these browsers show.
"""

from sandbox.web_push.server import PushServer, start_simulator

__all__ = ["PushServer", "start_simulator"]
