"""Threads: what a person and an inbox have written to each other. An inbox is a sender, or an office: a group of the
directory whose members read it together.

    a reply ─▶ Events.put ─▶ tube `replies` ─▶ ReplyWorker ─▶ Threads.add, then a delivery to the other side

Guarantees: a message is in one thread, once, however often its event is processed; it is relayed once. A relayed
message is built anew: the other side gets the name of the directory and the words, and no address.

Neighbours: `core.orders` below, which makes the deliveries; `delivery/` and `scenarios/` above.
"""

from core.threads.incoming import UnquotedReplies
from core.threads.relay import Relay
from core.threads.replies import ReplyWorker
from core.threads.threads import Inbox, Thread, ThreadMessage, Threads

__all__ = ["Inbox", "Relay", "ReplyWorker", "Thread", "ThreadMessage", "Threads", "UnquotedReplies"]
