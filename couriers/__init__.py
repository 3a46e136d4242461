"""The channels. One module or package per channel; its name is the channel's name.

Each has `Settings` (a frozen dataclass) and `open(settings, directory)`, which returns a courier. A courier makes
exactly one attempt and returns an outcome for each message. Retries, throttling, leases and histories belong to
`core.courier`, which is also all of core that a courier imports.
"""
