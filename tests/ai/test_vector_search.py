"""The search finds exactly the nearest documents."""

import numpy
import pytest

from conductor_app.ai.commands.vectors import Document, Place, delete_index, replace_parts, store_documents
from conductor_app.ai.models import METRICS
from conductor_app.ai.queries import vectors as vector_search
from conductor_app.ai.queries.vectors import VectorSearch, search_documents
from conductor_app.core.errors import Invalid

pytestmark = pytest.mark.django_db
PLACE = Place("default", "docs", "")


def store(rows, place=PLACE):
    store_documents(place, [Document(f"{number}", row) for number, row in enumerate(rows)])


def search(embedding, metric="l2", count=5, namespace=None, index="docs"):
    request = VectorSearch("default", index, namespace, metric, embedding, count)
    return [(each.document.document_id, each.score) for each in search_documents(request)]


def numbers(rows, dimensions=24, seed=1):
    return numpy.random.default_rng(seed).standard_normal((rows, dimensions)).astype("f4")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("spread", [1, 1e-3, 1e4])
def test_a_search_finds_the_nearest_documents_of_all_pages(metric, spread, monkeypatch):
    monkeypatch.setattr(vector_search, "PAGE_ROWS", 70)
    base = numbers(1, seed=3)[0]
    rows = base + spread * numbers(300)
    store(rows.tolist())
    query = base + spread * numbers(1, seed=2)[0]

    wide, other = rows.astype("f8"), query.astype("f8")
    products = wide @ other
    cosines = products / (numpy.linalg.norm(wide, axis=1) * numpy.linalg.norm(other))
    exact = {"l2": numpy.linalg.norm(wide - other, axis=1), "cosine": 1 - cosines, "inner_product": -products}[metric]
    found = search(query.tolist(), metric, 10)
    assert [score for _, score in found] == pytest.approx(sorted(exact)[:10], rel=1e-4, abs=1e-6)
    assert [exact[int(name)] for name, _ in found] == pytest.approx(sorted(exact)[:10], rel=1e-4, abs=1e-6)


def test_a_write_to_the_index_is_found_by_the_next_search():
    store([[1.0, 0.0], [0.0, 1.0]])
    assert search([1, 0], count=1) == [("0", 0)]

    store_documents(PLACE, [Document("new", [0.9, 0.1])])
    assert search([0.9, 0.1], count=1)[0][0] == "new"
    replace_parts(PLACE, "", [Document("0", [5.0, 5.0])])
    assert [name for name, _ in search([1, 0])] == ["0"]
    delete_index(PLACE, "olga")
    assert search([1, 0]) == []


def test_namespaces_are_kept_apart():
    store([[1.0, 0.0]], Place("default", "docs", "a"))
    store([[0.0, 1.0]], Place("default", "docs", "b"))

    assert search([1, 0], namespace="a") == [("0", 0)]
    assert search([0, 1], namespace="b") == [("0", 0)]
    assert len(search([0, 1])) == 2


def test_another_length_is_refused():
    store([[1.0, 0.0]])
    with pytest.raises(Invalid, match="The embedding has 3 numbers, but documents of the index docs have 2"):
        search([1, 0, 0])
