"""The database is prepared in a process of its own, in parallel to the loading of modules."""

import os
from functools import partial

import pytest

from conductor_app.processes.serving import ForkedCall


def test_the_result_is_returned():
    assert ForkedCall(lambda: {"answer": 42}).result() == {"answer": 42}


def test_it_runs_in_another_process():
    assert ForkedCall(os.getpid).result() != os.getpid()


def test_an_exception_is_raised_in_the_caller():
    def fail():
        raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        ForkedCall(fail).result()


def test_a_killed_process_has_no_result():
    with pytest.raises(EOFError):
        ForkedCall(partial(os._exit, 3)).result()
