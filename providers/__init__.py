"""Clients of outside services that carry no messages: models and speech, sign-in, requests of scenarios.

Neighbours: `core` below. Bots, scenarios, jobs and `cli` use a provider; a provider knows none of them,
and no other provider.
"""
