"""Deliveries over HTTP: accept, list, show, track, cancel, reschedule, and the reports of providers."""
