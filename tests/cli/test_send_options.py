"""What `./ada send` makes of its options."""

from argparse import ArgumentParser, Namespace

import pytest

from cli.command import CommandFailed
from cli.commands.messages.new_delivery import declare_send, new_delivery


def parsed(*options: str) -> Namespace:
    parser = ArgumentParser()
    declare_send(parser)
    return parser.parse_args(["--to", "1", "--text", "hi", *options])


def body_of(*options: str) -> dict[str, object]:
    return new_delivery(parsed(*options))


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (["--zone", "Europe/Moscow"], "--zone belongs to --every"),
        (["--last", "2027-01-01T00:00:00Z"], "--last belongs to --every"),
        (["--sheet", "People"], "--sheet belongs to --table"),
        (["--encoding", "windows-1251"], "--encoding belongs to --table"),
        (["--of", "unanswered"], "--of belongs to --follow-up"),
        (["--every", "weekdays 9:00", "--wait"], "--wait waits for one delivery"),
        (["--ask", "Yes,No"], r"with \| between them"),
    ],
)
def test_an_option_that_would_mean_nothing_is_refused(options: list[str], refusal: str) -> None:
    with pytest.raises(CommandFailed, match=refusal):
        body_of(*options)


@pytest.mark.parametrize("written", ["2m", "PT2M"])
def test_a_duration_is_written_like_every_other_or_as_the_api_has_it(written: str) -> None:
    assert body_of("--strategy", "first", "--fallback-after", written)["wait"] == "PT2M"
