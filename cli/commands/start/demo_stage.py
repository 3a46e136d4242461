"""The stage of every play of `./ada demo`: the API, the sandbox, and a way to show a line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cli.client.http_client import HttpClient
from cli.client.sandbox_chat import SandboxChat
from cli.commands.start.installation import simulated_channels
from cli.processes.supervisor import PrintLine
from couriers.channel import channels


@dataclass(frozen=True)
class Stage:
    """The place of a play. `show` prints a line of it; `kill` kills a process, which then runs again; `language`
    is that of the story, if the play has several.
    """

    api: HttpClient
    sandbox: HttpClient
    show: PrintLine
    kill: Callable[[str], None]
    language: str

    def chat(self, address: int, name: str, *, group: int = 0) -> SandboxChat:
        return SandboxChat(self.sandbox, address, name, self.show, group=group, language=self.language)


def sample_contacts(person: int) -> Mapping[str, str]:
    """Return channel → address of a person of the plays, in the channels in which it has one."""
    return {name: one.samples[person] for name, one in channels().items() if person in one.samples}


def sample_channels() -> Sequence[str]:
    """Return the simulated channels in which the people of the plays have addresses."""
    return [name for name in simulated_channels() if channels()[name].samples]


def has_inbox(channel: str) -> bool:
    """Return whether the inbox of the sandbox has the messages of the channel."""
    return channels()[channel].is_simulated
