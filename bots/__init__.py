"""The ways in: what people do in Telegram, VK and SMS becomes events in the queue, and the answers go back to them.

Guarantee: an event is processed once and, per person, in the order of arrival, by any process. Neighbours: `core`
below; `cli` starts the processes.
"""
