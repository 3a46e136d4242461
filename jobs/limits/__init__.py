"""Bounds that hold over all processes: how many iterations run at once, and how many calls begin in a time.

Limit ─▶ Slots.take before an iteration ─▶ lua/jobs/functions/take_slots.lua ─▶ it runs, or its task waits
Limit ─▶ Turns.take before a call ─▶ lua/jobs/functions/take_turn.lua ─▶ it begins, or the iteration sleeps
"""
