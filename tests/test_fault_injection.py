"""The injector of faults: each call of a block fails once."""

from contextlib import suppress

import pytest
from django.core.files.storage import default_storage
from django.db import OperationalError, connection, transaction

from conductor_app.access.models import Secret
from conductor_app.core.errors import StorageUnavailable
from conductor_app.db import statements


def test_each_call_fails_once_and_the_last_block_not_at_all(faults):
    sites = []
    for fault in faults.at_each_call("OperationalError"):
        with fault:
            for _ in range(2):
                try:
                    statements.fetch("SELECT 1")
                except OperationalError:
                    sites.append(fault.site)

    assert sites == ["SELECT 1", "SELECT 1"]
    assert fault.position == 3


def test_calls_outside_of_the_block_are_not_counted(faults):
    for fault in faults.at_each_call("MemoryError"):
        Secret.objects.count()
        with fault:
            pass
        Secret.objects.count()

    assert fault.position == 1


def test_an_error_of_the_storage_occurs_in_no_statement(faults):
    sites = []
    for fault in faults.at_each_call("StorageUnavailable"):
        with fault, suppress(StorageUnavailable):
            statements.fetch("SELECT 1")
            default_storage.exists("input.json")
        sites.append(fault.site)

    assert sites == ["storage: exists input.json", ""]


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="On SQLite, an error leaves its transaction usable.")
def test_an_error_of_the_database_fails_its_transaction(faults):
    fault = next(faults.at_each_call("InternalError"))
    with pytest.raises(Exception, match="current transaction is aborted"), transaction.atomic():
        with pytest.raises(Exception, match="read-only"), fault:
            statements.fetch("SELECT 1")
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
