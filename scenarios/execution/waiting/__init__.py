"""Waiting of runs: for the end of a delivery, for a slow step, for a moment."""
