"""Plays Kannel's smsbox: GET /cgi-bin/sendsms, delivery reports to dlr-url, and SMS that people write.

Answers and escapes are those of Kannel 1.4.5 (user guide, chapter "Using SMS"); tests/sandbox/test_kannel.py puts the
same questions to a real one.
"""

from sandbox.sms.server import SmsServer

__all__ = ["SmsServer"]
