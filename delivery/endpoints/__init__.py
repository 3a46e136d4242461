"""One module per group of operations: deliveries, bulk, tracking, delivery reports, queue, health, pages.

An endpoint gets a validated request, calls one service of core and returns the response. It holds no state.
"""
