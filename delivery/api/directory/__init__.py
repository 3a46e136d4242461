"""The directory over HTTP: people, contacts, groups, supergroups, ownerships.

Guarantee: every error of a body is reported at once, with its path. Neighbours: `core.directory` does the work.
All operations need the scope `manage`, reading too: contacts are private.
"""
