"""The client side of the verbs that call a running Ada: HTTP, command-line arguments, text output.

`http_client` calls the API with the key from `first_api_key`. The other modules are pure.
Neighbours: `cli.commands` uses this package; it uses `cli.settings`.
"""
