"""Simulates Kannel's smsbox: GET /cgi-bin/sendsms, delivery reports to dlr-url, and incoming SMS.

Responses and escapes are those of Kannel 1.4.5 (user guide, chapter "Using SMS"); tests/sandbox/test_kannel.py compares
them with a real Kannel.
"""

from sandbox.sms.server import SmsServer

__all__ = ["SmsServer"]
