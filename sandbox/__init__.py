"""The sandbox: Telegram, VK and an SMS gateway on loopback ports, with an inbox that shows who received what.

The provider servers (`telegram/`, `vk.py`, `sms.py`) speak the real protocols and share one `World`: it keeps what
people received and says who meets with which failure. `web.py` shows the world; `sandbox.py` starts all of it.
"""
