"""The page of the indexes of vectors."""

import pytest

from conductor_app.access.models import AuditEntry
from conductor_app.ai.commands.vectors import Document, Place, store_documents
from conductor_app.ai.models import VectorDocument
from tests.page_text import page_text

pytestmark = pytest.mark.django_db
PAGE = "/admin/vector-indexes/"


@pytest.fixture
def documents(clock):
    for namespace, count in (("a", 3), ("b", 1)):
        store_documents(
            Place("default", "docs", namespace),
            [Document(f"{number}", [0.5, 1.0], "abcd") for number in range(count)],
        )


def test_the_page_shows_documents_dimensions_and_size(viewer, documents):
    page = page_text(viewer.get(PAGE))

    assert "docs a default 3 2 36 B" in page
    assert "docs b default 1 2 12 B" in page
    assert "Delete" not in page


def test_a_namespace_can_be_deleted(operator, documents):
    place = {"database": "default", "index": "docs", "namespace": "a"}
    answer = operator.post(PAGE, place, follow=True)

    assert "3 documents deleted." in page_text(answer)
    assert VectorDocument.objects.get().namespace == "b"
    entry = AuditEntry.objects.get(object_type="vector index")
    assert (entry.object_id, entry.action) == ("default/docs/a", "delete")


def test_an_index_that_does_not_exist_cannot_be_deleted(operator):
    answer = operator.post(PAGE, {"database": "default", "index": "none", "namespace": ""}, follow=True)

    assert "The index none has no documents in this namespace." in page_text(answer)


def test_a_viewer_cannot_delete(viewer, documents):
    assert viewer.post(PAGE, {"database": "default", "index": "docs", "namespace": "a"}).status_code == 403
    assert VectorDocument.objects.count() == 4


def test_without_documents_the_page_says_which_step_stores_them(viewer):
    assert "LLM_INDEX_TEXT stores the first one." in page_text(viewer.get(PAGE))
