"""Secrets in task inputs, which are filled in when a worker claims the task."""

import pytest

from conductor_app.core.secret_places import resolve_places, restore_places

SECRETS = {"TOKEN": "s3cret", "DB": '{"user": "u", "ports": [1, 2]}', "TEXT": "{not json", "DEEP": "[" * 100_000}


@pytest.mark.parametrize(
    ("stored", "resolved"),
    [
        ("${workflow.secrets.TOKEN}", "s3cret"),
        ("Bearer ${workflow.secrets.TOKEN}", "Bearer s3cret"),
        ("${workflow.secrets.DB}", '{"user": "u", "ports": [1, 2]}'),
        ("${workflow.secrets.DB.user}", "u"),
        ("${workflow.secrets.DB.ports}", [1, 2]),
        ("p ${workflow.secrets.DB.ports} ${workflow.secrets['DB'].user}", "p [1, 2] u"),
        ("${workflow.secrets.DB.none}", None),
        ("${workflow.secrets.TEXT.user}", None),
        ("${workflow.secrets.DEEP.user}", None),
        ("${workflow.secrets.EMPTY_WORD}", None),
        ("${workflow.secrets}", None),
        ("a ${workflow.secrets.EMPTY_WORD} b", "a  b"),
        ("${workflow.input.x} ${workflow.secrets.TOKEN", "${workflow.input.x} ${workflow.secrets.TOKEN"),
        ("${stray {{ ${workflow.secrets.TOKEN} }", "${stray {{ s3cret }"),
        ({"h": ["${workflow.secrets.TOKEN}", 1, "${x}"]}, {"h": ["s3cret", 1, "${x}"]}),
    ],
)
def test_secrets_are_resolved_where_they_are_written_and_other_values_stay(stored, resolved):
    assert resolve_places(stored, restore_places(stored, {}, stored), SECRETS.get) == resolved


def test_a_secret_is_not_expanded_itself():
    written = "> ${workflow.secrets.A}"
    places = restore_places(written, {}, written)

    assert resolve_places(written, places, {"A": "${workflow.secrets.A}"}.get) == "> ${workflow.secrets.A}"
