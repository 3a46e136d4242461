"""Which tests run on the same pytest worker."""

from tests.support.distribution import FIRST, TOGETHER, folder_of


def test_a_folder_that_shares_an_installation_is_one_unit_and_another_file_is_its_own() -> None:
    assert folder_of("tests/cli/test_up.py::test_x", TOGETHER) == "tests/cli"
    assert folder_of("tests/delivery/console/test_live.py::test_x[a::b]", TOGETHER) == "tests/delivery/console"
    assert folder_of("tests/delivery/test_live.py::test_x", TOGETHER) is None
    assert folder_of("tests/system/crash/test_server.py::test_x", FIRST) == "tests/system"
