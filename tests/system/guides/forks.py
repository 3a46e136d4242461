"""Runs the short commands of guides as forks: an interpreter that imports what they need takes twenty times as long."""

from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread

from tests.support.forked import ForkedProcess, Program


class _Command(StreamRequestHandler):
    """Runs what the process of `forks.sh` whose id is sent stands for; replies with its exit code."""

    def handle(self) -> None:
        place = Path("/proc", self.rfile.readline().decode().strip())
        _, _, module, *args = (place / "cmdline").read_text().split("\0")[:-1]
        environment = dict(entry.split("=", 1) for entry in (place / "environ").read_text().split("\0")[:-1])
        streams = place / "fd"
        folder = (place / "cwd").readlink()
        process = ForkedProcess(Program(module, args, environment, folder, streams / "1", streams / "2", streams / "0"))
        process.wait()
        self.wfile.write(f"{process.poll()}\n".encode())


def serve_forks() -> ThreadingTCPServer:
    """Serve until `shutdown`; its port is what `forks.sh` finds in GUIDE_FORKS."""
    server = ThreadingTCPServer(("127.0.0.1", 0), _Command)
    Thread(target=server.serve_forever, daemon=True).start()
    return server
