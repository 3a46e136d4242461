"""The HTTP API: authenticates, validates, calls core and encodes the result. It keeps no state of its own.

Neighbours: `cli` builds `delivery.app` and runs it; everything that lasts is in `core`, reached through `Services`.

    app → routes | openapi → api | console → http
"""
