"""Simulates a mail server on aiosmtpd: EHLO, STARTTLS, AUTH, and answers by magic recipients and rules.

It plays the provider that a university submits its mail to: only a signed-in client may send.
"""

from sandbox.mail.server import SmtpServer

__all__ = ["SmtpServer"]
