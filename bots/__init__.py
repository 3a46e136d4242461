"""The ways in: updates of Telegram, VK and SMS become tasks of the queue, and the answers go back to the person.

Guarantee: an update is processed once and, per person, in the order of arrival, by any process. Neighbours: `core`
below; `cli` starts the processes.
"""
