"""The invariants that the audit checks: pure functions of what one atomic read has found."""
