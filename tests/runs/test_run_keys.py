"""Keys of runs: what lists show in place of ids."""

import pytest

from conductor_app.runs.queries.recent import run_keys
from tests.builders import simple
from tests.scenario import start_run_of


def key_of(**request):
    run = start_run_of(simple("ship"), **request)
    key = run_keys([run.pk])[run.pk]
    return key.text.replace(run.pk[-4:], "1f08"), key.field


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"correlation_id": "order-4711", "input": {"customer": "ann"}}, ("order-4711", "")),
        ({"input": {"customer": "ann", "order": 4711}}, ("ann", "customer")),
        ({"input": {"order": 4711, "customer": "ann"}}, ("order 4711", "order")),
        ({"input": {"express": True, "note": " ", "lines": [1], "order": {"id": "A-1"}}}, ("A-1", "order.id")),
        ({"input": {"order": {"id": "A-1"}, "customer": "ann"}}, ("ann", "customer")),
        ({"input": {"_taskToDomain": "x", "password": "***"}}, ("…1f08", "")),
        ({"input": {"note": "two\nlines " + "x" * 80}}, ("two lines " + "x" * 49 + "…", "note")),
        ({"input": {"note": "x" * 5_000}}, ("…1f08", "")),
        ({}, ("…1f08", "")),
    ],
)
def test_a_key_is_the_correlation_id_or_the_first_scalar_of_the_input_or_the_end_of_the_id(
    clock, db, request_, expected
):
    assert key_of(**request_) == expected


def test_the_keys_of_many_runs_take_one_query(clock, db, django_assert_num_queries):
    ids = [start_run_of(simple("ship"), input={"order": number}).pk for number in range(20)]

    with django_assert_num_queries(1):
        assert len(run_keys(ids)) == 20
    with django_assert_num_queries(0):
        assert run_keys([""]) == {}
