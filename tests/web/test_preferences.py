"""Preferences of a user that change every page."""

import re

HERE = "/admin/preferences/"


def body_classes(page):
    return re.search(r'<body class="([^"]*)"', page.text)[1].split()


def test_rows_are_comfortable_until_a_user_chooses_compact_ones(operator):
    first = body_classes(operator.get("/admin/queues/"))
    operator.post(HERE, {"density": "compact"})

    assert "compact" not in first
    assert "compact" in body_classes(operator.get("/admin/queues/"))
    assert "compact" in body_classes(operator.get("/admin/conductor/run/"))


def test_an_unknown_density_is_refused_by_name(operator):
    answer = operator.post(HERE, {"density": "tiny"}, follow=True)

    assert "Unsupported density" in answer.text and "tiny" in answer.text
    assert "compact" not in body_classes(operator.get(HERE))
