"""The contract with psycopg's internals. A new version that breaks it fails here first, and can run with cursors."""

import pytest
from django.db import connection, transaction
from psycopg._preparing import PrepareManager

from conductor_app.db import pipeline, statements

ON_POSTGRESQL = pytest.mark.skipif(connection.vendor != "postgresql", reason="psycopg speaks to PostgreSQL only")


def test_this_version_of_psycopg_supports_the_pipeline():
    assert pipeline.is_supported()


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_prepared_statements_are_found_by_name_until_they_are_deallocated():
    statements.fetch("SELECT 1 + %s::integer", [1])
    own = connection.connection
    assert b"SELECT 1 + $1::integer" in {text for text, _ in pipeline.prepared_names(own)}

    pipeline.discard_prepared(own)

    assert pipeline.prepared_names(own) == {}
    assert list(pipeline.pending_closings(own)) == [None]
    assert statements.fetch("SELECT 1 + %s::integer", [1]) == [(2,)]
    assert list(pipeline.pending_closings(own)) == []


@ON_POSTGRESQL
@pytest.mark.django_db(transaction=True)
def test_a_transaction_starts_with_the_command_of_psycopg():
    connection.ensure_connection()

    assert pipeline.begin_command(connection.connection).startswith(b"BEGIN")


@pytest.mark.django_db
def test_with_another_version_of_psycopg_cursors_execute_the_same_statements(monkeypatch):
    monkeypatch.delattr(PrepareManager, "clear")
    pipeline.is_supported.cache_clear()
    statements._supports_pipeline.cache_clear()
    try:
        with transaction.atomic():
            assert statements.fetch("SELECT CAST(%s AS integer), CAST(%s AS text)", [7, "x"]) == [(7, "x")]
        assert not statements._bypasses_cursors()
        assert not pipeline.is_supported()
    finally:
        pipeline.is_supported.cache_clear()
        statements._supports_pipeline.cache_clear()
