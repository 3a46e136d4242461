"""The people that the benchmarks import, and the API by which they do it."""

from collections.abc import Iterable, Sequence

from bench.harness.delivery_samples import address
from bench.harness.environment import API_KEY, Environment
from cli.client.http_client import ClientUpload, HttpClient, JsonObject
from cli.command import CommandFailed

CHANNELS = ("telegram", "sms")
CSV = "text/csv; charset=utf-8"


def name(number: int) -> str:
    """Return a name in ASCII: 10,000 inline people must fit into the 1 MiB of a request."""
    return f"Anna {number}"


def contacts(number: int) -> dict[str, str]:
    return {channel: address(channel, number) for channel in CHANNELS}


def people_csv(count: int) -> bytes:
    """Return a file of `count` people with name, e-mail and two contacts."""
    header = ["id", "name", "email", "role", *(f"contacts.{channel}" for channel in CHANNELS)]
    return csv_file(header, (person_row(number) for number in range(count)))


def person_row(number: int) -> Sequence[str]:
    return [str(number), name(number), f"p{number}@example.org", "student", *contacts(number).values()]


def csv_file(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    return "".join(",".join(row) + "\n" for row in (header, *rows)).encode()


async def import_csv(api: HttpClient, kind: str, content: bytes) -> None:
    """Import a file. Raises CommandFailed if it is refused."""
    result: JsonObject = await api.upload("/v1/import", ClientUpload(content, CSV), {"kind": kind})
    if "created" not in result:
        raise CommandFailed(str(result))


async def start_api(env: Environment) -> HttpClient:
    """Starts an API process and returns a client of it."""
    _, facts = await env.start_command("serve")
    return HttpClient(facts["http"], API_KEY)
