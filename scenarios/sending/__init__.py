"""The delivery that a `send` orders: the text and the content of a message, its recipients and its time, and what
became of it.

Neighbours: `scenarios.sending.message` decides what is said; `core.orders` stores the delivery;
`scenarios.actions.send` and `scenarios.execution` use this package.
"""
