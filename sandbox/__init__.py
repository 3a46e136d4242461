"""A simulation of Telegram, its Bot API, VK, MAX, SMS and e-mail on loopback ports, with an inbox of all messages.

The provider servers (`telegram/`, `bot_api/`, `vk/`, `max/`, `sms/`, `mail/`) speak the real protocols. They share one
`SandboxState`, which keeps the messages received and selects the faults to inject. `web/` shows the state; `sandbox.py`
starts everything. It imports nothing of Ada and sends nothing to other machines. Used by `./ada sandbox`, benchmarks
and tests.
"""
