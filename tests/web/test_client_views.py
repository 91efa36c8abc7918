"""Requests of API clients leave no reference cycles, so their memory is free as soon as they are answered."""

import gc
import weakref

import pytest
from django.test import RequestFactory
from django.urls import resolve

pytestmark = pytest.mark.slow


@pytest.fixture
def without_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("method", ["get", "head", "post", "delete"])
@pytest.mark.parametrize("path", ["/api/tasks/poll/pay", "/api/workflow/unknown", "/api/queue/v1/ping"])
def test_a_request_is_freed_without_garbage_collection(db, method, path, without_collection):
    request = getattr(RequestFactory(), method)(path)
    match = resolve(path)

    match.func(request, *match.args, **match.kwargs)
    freed = weakref.ref(request)
    del request

    assert freed() is None
