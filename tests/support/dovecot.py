"""A real IMAP server for tests: Debian's dovecot, as the current user, on a free loopback port."""

import grp
import imaplib
import os
import pwd
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import trustme

from cli.processes.embedded_valkey import free_port
from tests.support.waiting import await_sync

USER, PASSWORD = "reply@school.example", "pass word-ü"
_CONFIGURATION = """
protocols = imap
listen = 127.0.0.1
base_dir = {base}/run
state_dir = {base}/state
log_path = {base}/log
{users}
first_valid_uid = 0
mail_uid = {uid}
mail_gid = {gid}
mail_location = maildir:{base}/mail
passdb {{
  driver = passwd-file
  args = scheme=PLAIN {base}/users
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={base}
}}
{tls}
disable_plaintext_auth = no
auth_failure_delay = 0
service anvil {{
  chroot =
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = {tls_port}
  }}
}}
service stats {{
  chroot =
}}
"""


class Dovecot:
    """One mailbox. Mails are put where a mail server puts them, into the folder of the new ones."""

    def __init__(self, base: Path, port: int, tls_port: int) -> None:
        self._base, self.port, self._mails = base, port, 0
        account = "reply%40school.example:pass%20word-%C3%BC@127.0.0.1"
        self.url = f"imap://{account}:{port}?starttls=off"
        self.tls_urls = f"imaps://{account}:{tls_port}", f"imap://{account}:{port}"

    def put(self, mail: bytes, received: str = "") -> None:
        """Put a mail. `received`: when, such as 20240101T1200, "" for now."""
        self._mails += 1
        path = self._base / "mail" / "new" / f"{self._mails}.M{self._mails}.host"
        path.write_bytes(mail)
        os.chown(path, *_owner())
        if received:
            at = datetime.strptime(received, "%Y%m%dT%H%M").replace(tzinfo=UTC).timestamp()
            os.utime(path, (at, at))

    def number_anew(self) -> None:
        """Give the mails other numbers, as after a restored backup."""
        for path in (self._base / "mail").glob("dovecot*"):
            path.unlink()
        numbers = self._base / "mail" / "dovecot-uidlist"
        numbers.write_text("3 V1000 N1 G0123456789abcdef0123456789abcdef\n")
        os.chown(numbers, *_owner())

    def flags(self) -> list[bytes]:
        """Return the flags of all mails."""
        with imaplib.IMAP4("127.0.0.1", self.port) as client:
            client.authenticate("PLAIN", lambda _: f"\0{USER}\0{PASSWORD}".encode())
            client.select(readonly=True)
            return [one for one in client.fetch("1:*", "(FLAGS)")[1] if isinstance(one, bytes)]


@contextmanager
def dovecot(certificate: trustme.LeafCert | None = None) -> Iterator[Dovecot]:
    """Run a server. `certificate`: for TLS from the beginning and STARTTLS, None for neither."""
    port, tls_port = free_port(), free_port() if certificate else 0
    with tempfile.TemporaryDirectory(prefix="dovecot") as short:  # the paths of its sockets have at most 100 characters
        base = Path(short)
        (base / "users").write_text(f"{USER}:{PASSWORD}\n")
        base.chmod(0o755)
        for name in ("mail", "mail/cur", "mail/new", "mail/tmp"):
            (base / name).mkdir()
            os.chown(base / name, *_owner())
        uid, gid = _owner()
        values = {"users": _users(), "base": base, "port": port, "tls_port": tls_port, "uid": uid, "gid": gid}
        values["tls"] = _tls(base / "tls.pem", certificate)
        (base / "dovecot.conf").write_text(_CONFIGURATION.format(**values))
        command = ["/usr/sbin/dovecot", "-F", "-c", str(base / "dovecot.conf")]
        process = subprocess.Popen(command, start_new_session=True)
        try:
            await_sync(lambda: _is_open(port), "dovecot listens")
            yield Dovecot(base, port, tls_port)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # it waits a second for its parts otherwise
            process.wait()


def _tls(file: Path, certificate: trustme.LeafCert | None) -> str:
    if certificate is None:
        return "ssl = no"
    certificate.private_key_and_cert_chain_pem.write_to_path(str(file))
    return f"ssl = yes\nssl_cert = <{file}\nssl_key = <{file}"


def _owner() -> tuple[int, int]:
    """Return as whom mails are read; dovecot refuses root."""
    if os.getuid() == 0:
        found = pwd.getpwnam("dovecot")
        return found.pw_uid, found.pw_gid
    return os.getuid(), os.getgid()


def _users() -> str:
    """Return as whom the parts run that need no right: the current user; for root those of the Debian package."""
    if os.getuid() == 0:
        return ""
    me, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
    return f"default_internal_user = {me}\ndefault_login_user = {me}\ndefault_internal_group = {group}"


def _is_open(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
