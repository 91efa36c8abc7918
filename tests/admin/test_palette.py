"""The command palette: search by a few letters, and commands."""

import pytest

from conductor_app.models import Poller
from tests.admin.page_text import html, page_text

HITS = "/admin/find/hits/"


@pytest.fixture
def polled(db, clock):
    Poller.objects.create(task_type="ocr", domain="", worker="w1", polled_at=clock.now())
    Poller.objects.create(task_type="ocr", domain="east", worker="w1", polled_at=clock.now())


def found(client, term, **headers):
    return client.get(HITS, {"q": term}, headers=headers)


def test_queues_are_found_by_a_part_of_their_names(operator, polled):
    page = found(operator, "cr")

    assert "Queue ocr" in page_text(page) and "Queue east:ocr" in page_text(page)
    assert '/admin/queue/?name=east%3Aocr"' in html(page)


def test_actions_on_a_queue_are_found_by_verb_in_either_language(operator, polled):
    german = {"Accept-Language": "de"}

    assert "Action Pause: ocr" in page_text(found(operator, "pause queue ocr"))
    assert '/admin/queue/?name=ocr#act-pause"' in html(found(operator, "pause ocr"))
    assert "Anhalten: ocr" in page_text(found(operator, "anhalten ocr", **german))


def test_actions_are_not_offered_to_viewers(viewer, polled):
    assert "Action" not in page_text(found(viewer, "pause ocr"))


@pytest.mark.parametrize("term", ["pause", "pause ", "\0", "%", "x" * 5000, "'; drop table"])
def test_odd_terms_are_answered(operator, polled, term):
    assert found(operator, term).status_code == 200
