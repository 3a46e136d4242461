"""Each line of the table of losses in docs/high-availability.md names a test that exists."""

import re

from tests.support.paths import ROOT


def test_every_test_that_the_table_of_losses_names_exists() -> None:
    page = (ROOT / "docs" / "high-availability.md").read_text()
    table = page.partition("| failure |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(table) >= 8
    for line in table:
        path, _, name = line.rstrip(" |").rpartition("| ")[2].partition("::")
        assert (ROOT / path).is_file(), line
        assert re.search(rf"^(async )?def {name}\b", (ROOT / path).read_text(), re.MULTILINE) or not name, line
