"""Receives updates by polling, under a lease that keeps two processes from polling for one bot, or by a webhook."""
