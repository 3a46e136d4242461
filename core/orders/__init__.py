"""Sending: the one way by which callers make deliveries.

Guarantees: each person is addressed once, however many groups contain it. Quiet hours, opt-outs, ownership and the
sender's quota hold for every way in. A refusal has a code and leaves no trace.

Neighbours: `core.directory` names the people, `core.admission` has the rules, `core.deliveries` stores the delivery.
`delivery/` and `scenarios/` call it.
"""

from core.orders.order import Addressee, AnyAddressee, Caller, Order, TableRef
from core.orders.sending import Sending
from core.orders.sending_policy import OfficeChat, SendingPolicy

__all__ = ["Addressee", "AnyAddressee", "Caller", "OfficeChat", "Order", "Sending", "SendingPolicy", "TableRef"]
