"""The channels: a folder for each, with its record in `channel.py`; and receiving, the same for all.

A record names the module of the courier: it has `Settings` (a frozen dataclass) and `open(settings, directory)`, which
returns a courier. A courier makes exactly one attempt and returns an outcome for each message. Retries, throttling,
leases and histories belong to `couriers.sending`, which is also all of core that a courier imports.
"""
