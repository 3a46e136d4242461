"""Proves the invariants of docs/proof.md on a live server, and repairs what can be repaired safely.

    scanner ─▶ lua/audit/*.lua: a page of keys in one atomic read ─▶ invariants/ (pure) ─▶ Violation
    Violation ─▶ Audit.repair ─▶ lua/repair/*.lua

Guarantees: no false alarm while tasks flow; every step is bounded; without a repair nothing is written. A repair checks
again and changes only what is still wrong. Used by `./ada audit` and the tests.
"""

from core.audit.audit import UNSEEN, Audit, Progress, Summary
from core.audit.invariants.invariant import Repair, Violation

__all__ = ["UNSEEN", "Audit", "Progress", "Repair", "Summary", "Violation"]
