"""Deliveries and their histories: enqueue, read, list, reschedule, cancel, retry, delivery reports, events, tracker.

Guarantees: one function creates a delivery with its history, order key and parcels, or nothing. A repeated request gets
the first result. Each history is read in one atomic step. Subscribers miss no change. A delivery of another tenant
looks like a delivery that does not exist.

Neighbours: `core.redis` (functions in `lua/delivery`), `core.model` (values), `couriers.sending` (writes outcomes
through the queue). `delivery/` calls `deliveries.Deliveries` and `tracker.Tracker`.
"""
