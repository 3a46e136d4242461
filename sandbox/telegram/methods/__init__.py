"""The methods of the API. `dispatch` finds the one of a request; each returns one of `replies`."""
