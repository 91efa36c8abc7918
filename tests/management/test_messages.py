"""`manage.py messages` on the command line."""

import pytest
from django.core.management import ManagementUtility


@pytest.mark.parametrize("words", [["-VUY5_URQUGleaNX1ZYD3w"], ["--no-color", "-VUY5_URQUGleaNX1ZYD3w"]])
def test_an_id_that_starts_with_a_dash_is_not_an_option(transactional_db, capsys, words):
    ManagementUtility(["manage.py", "messages", *words]).execute()

    assert capsys.readouterr().out == "[]\n"
