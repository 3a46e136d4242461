"""The client side of the commands: HTTP calls, arguments, formatting."""
