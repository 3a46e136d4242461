"""Deliveries and what became of them: enqueue, read, list, cancel, retry, delivery reports, events, tracker."""
