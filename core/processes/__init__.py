"""The register of processes: what runs, since when, what it works on, and why it has stopped (W-14).

    a process ─▶ ProcessRegister.write, every ten seconds ─▶ an entry that is removed when its beats end
    ProcessRegister.list, unserved ─▶ the API, the console, ./ada processes

Guarantee: an entry is a note and decides nothing; no step of the queue depends on it (docs/decisions/0107).
Neighbours: `cli` writes the entries, `delivery` and `cli` read them.
"""

from core.processes.installation_mark import (
    ACCEPT_LOSS,
    LOSS_REMEDY,
    DataLoss,
    InstallationMark,
    accept_loss,
    last_loss,
)
from core.processes.register import (
    ANSWERS,
    FaultyPart,
    ProcessOverview,
    ProcessRecord,
    ProcessRegister,
    ProcessState,
    ProcessView,
    RequestKind,
    UnservedTube,
    overview,
    unanswered_bots,
)

__all__ = [
    "ACCEPT_LOSS",
    "ANSWERS",
    "LOSS_REMEDY",
    "DataLoss",
    "FaultyPart",
    "InstallationMark",
    "ProcessOverview",
    "ProcessRecord",
    "ProcessRegister",
    "ProcessState",
    "ProcessView",
    "RequestKind",
    "UnservedTube",
    "accept_loss",
    "last_loss",
    "overview",
    "unanswered_bots",
]
