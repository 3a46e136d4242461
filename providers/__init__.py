"""Clients of outside services, once per service: the calls, their errors, the readers of what a service sends.

Neighbours: `core` below. Couriers, bots, scenarios, jobs and `cli` use a provider; a provider knows none of them,
and no other provider.
"""
