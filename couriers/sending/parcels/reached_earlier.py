"""Recipients that an earlier channel has reached since a parcel became ready: the strategy `first` (D-36).

`lua/delivery/modules/next_channel.lua` decides which entries of a later channel are attempted. Until a courier claims
them, a delivery report may have come: those recipients are skipped here, before the first attempt.

Called by `couriers.sending.parcels.parcel_executor`.
"""

from collections.abc import Collection

from core.deliveries.histories.encoding import load_plan
from core.deliveries.histories.parcels import load_parcel
from core.deliveries.histories.reader import HistoryReader
from core.model.states import REACHED, Status
from couriers.sending.parcels.parcel import Parcel

_CONFIRMED = frozenset({Status.DELIVERED, Status.READ})


async def reached_earlier(
    reader: HistoryReader, parcel: Parcel, channel: str, recipients: Collection[int]
) -> frozenset[int]:
    """Return those of the recipients, by number, that an earlier channel of the delivery has reached. With a wait only
    a delivery report counts.
    """
    if parcel.place <= 1 or not recipients:
        return frozenset()
    fields = await reader.read_fields(parcel.history_key, ("plan", "wait"))
    plans = load_plan(fields["plan"] or "")
    names = {f"parcel:{plan.channel}:{parcel.number}": plan.channel for plan in plans[: parcel.place - 1]}
    texts = await reader.read_fields(parcel.history_key, list(names))
    numbers = {
        entry.field(names[name]): entry.number
        for name, text in texts.items()
        for entry in load_parcel(text or "[0,[]]")[1]
        if entry.number in recipients
    }
    enough = _CONFIRMED if fields["wait"] else REACHED
    outcomes = await reader.outcomes(parcel.history_key, list(numbers))
    return frozenset(numbers[name] for name, text in outcomes.items() if text and text.split("|")[0] in enough)
