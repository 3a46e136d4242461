"""The operations of the API. A resource is one file: its requests and responses, its handlers, and its `ROUTES`.

A handler gets a validated request, calls one service of core, of the scenarios or of the jobs, and returns the
response. It holds no state.
"""
