"""Scenarios: bots whose behaviour is written in YAML.

Neighbours: `core` below; `cli` runs the commands. Siblings (`bots`, `delivery`, `couriers`) are not imported.
"""
