"""Deliveries over HTTP: send, preview, list, show, track, cancel, reschedule, retry; templates, channels, quotas."""
