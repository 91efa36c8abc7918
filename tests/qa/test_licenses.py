"""The licenses of packages that this project installs permit its distribution under the Apache License 2.0."""

import pytest

from qa.supply_chain.licenses import PAGE, is_accepted, render, shipped_licenses


def test_every_license_of_a_server_and_the_demo_is_accepted():
    assert [(pin.name, name) for pin, name in shipped_licenses().items() if not is_accepted(name)] == []


def test_the_page_of_licenses_is_that_of_the_lock_files():
    """After a change of a lock file, `make licenses` writes the page again."""
    assert PAGE.read_text() == render(shipped_licenses())


@pytest.mark.parametrize(
    "expression",
    ["MIT", "MIT OR GPL-3.0-only", "GPL-2.0-or-later OR Artistic-1.0-Perl", "MPL-2.0 AND (GPL-3.0-only OR MIT)",
     "MIT OR GPL-2.0-only AND MIT", "((MIT))"],
)  # fmt: skip
def test_an_accepted_license_permits_distribution(expression):
    assert is_accepted(expression)


@pytest.mark.parametrize(
    "expression",
    ["GPL-3.0-or-later", "AGPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT OR Apache-2.0) AND GPL-2.0-only", "SSPL-1.0",
     "LicenseRef-Proprietary", "unknown", "not installed", "", "MIT Apache-2.0"],
)  # fmt: skip
def test_other_licenses_are_refused(expression):
    assert not is_accepted(expression)
