"""The search in compact vectors finds exactly the documents that a comparison of all finds."""

import numpy
import pytest

from conductor_app.ai.commands.vectors import Document, Place, delete_index, replace_parts, store_documents
from conductor_app.ai.models import METRICS
from conductor_app.ai.queries import vectors as vector_cache
from conductor_app.ai.queries import vectors as vector_search
from conductor_app.ai.queries.vectors import VectorPage, VectorSearch, bounds, compact, search_documents
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


@pytest.fixture
def reads(monkeypatch):
    """Return the list of the reads of whole indexes."""
    found = []
    read = vector_search.read_pages

    def read_and_record(request):
        found.append(request.index)
        return read(request)

    monkeypatch.setattr(vector_search, "read_pages", read_and_record)
    return found


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("spread", [1, 1e-3, 1e4])
def test_a_search_in_compact_vectors_finds_what_a_comparison_of_all_finds(metric, spread, settings):
    base = numbers(1, seed=3)[0]
    store((base + spread * numbers(300)).tolist())
    query = (base + spread * numbers(1, seed=2)[0]).tolist()
    found = search(query, metric, 10)
    settings.CONDUCTOR_AI_SEARCH_CACHE_MB = 0

    expected = search(query, metric, 10)
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(5))
def test_the_exact_distance_is_always_within_its_bounds(metric, seed):
    rng = numpy.random.default_rng(seed)
    matrix = (rng.standard_normal((50, 64)) * 10.0 ** rng.integers(-30, 30, (50, 1))).astype("f4")
    matrix[7] = 0
    query = (rng.standard_normal(64) * 10.0 ** rng.integers(-30, 30)).astype("f4")
    rows, wide = matrix.astype("f8"), query.astype("f8")
    norms = numpy.linalg.norm(rows, axis=1)

    least, greatest = bounds(compact(VectorPage(list(range(50)), matrix, norms.tolist())), query, metric)

    products = rows @ wide
    cosines = numpy.divide(products, norms * numpy.linalg.norm(wide), out=numpy.zeros(50), where=norms > 0)
    exact = {"l2": ((rows - wide) ** 2).sum(axis=1), "cosine": 1 - cosines, "inner_product": -products}[metric]
    assert (least <= exact).all()
    assert (exact <= greatest).all()


def test_a_second_search_reads_only_the_nearest_documents(reads):
    store(numbers(300).tolist())
    for seed in range(3):
        search(numbers(1, seed=seed)[0].tolist())

    assert reads == ["docs"]


def test_equal_documents_beyond_the_limit_are_all_compared(reads, monkeypatch):
    monkeypatch.setattr(vector_search, "MAX_CANDIDATES", 10)
    store([[1.0, 2.0]] * 30)

    assert [score for _, score in search([1, 2], count=3)] == [0, 0, 0]
    assert reads == ["docs", "docs"]


def test_a_write_to_the_index_is_found_by_the_next_search(reads):
    store([[1.0, 0.0], [0.0, 1.0]])
    assert search([1, 0], count=1) == [("0", 0)]

    store_documents(PLACE, [Document("new", [0.9, 0.1])])
    assert search([0.9, 0.1], count=1)[0][0] == "new"
    replace_parts(PLACE, "", [Document("0", [5.0, 5.0])])
    assert [name for name, _ in search([1, 0])] == ["0"]
    delete_index(PLACE, "olga")
    assert search([1, 0]) == []


def test_a_write_to_another_index_keeps_what_was_read(reads):
    store([[1.0, 0.0]])
    search([1, 0])
    store([[1.0, 0.0]], Place("default", "others", ""))
    search([1, 0])

    assert reads == ["docs"]


def test_namespaces_are_kept_apart(reads):
    store([[1.0, 0.0]], Place("default", "docs", "a"))
    store([[0.0, 1.0]], Place("default", "docs", "b"))

    assert search([1, 0], namespace="a") == [("0", 0)]
    assert search([0, 1], namespace="b") == [("0", 0)]
    assert len(search([0, 1])) == 2
    assert len(reads) == 3


def test_the_least_recently_used_index_is_forgotten_first(reads, monkeypatch, settings):
    monkeypatch.setattr(vector_cache, "MIB", 3 * 30 * (24 + 8 + 4 + 8 + 8) - 1)
    settings.CONDUCTOR_AI_SEARCH_CACHE_MB = 1
    for name in ("one", "two", "three"):
        store(numbers(30).tolist(), Place("default", name, ""))
    query = numbers(1, seed=2)[0].tolist()
    for name in ("one", "two", "one", "three", "one", "two"):
        search(query, index=name)

    assert reads == ["one", "two", "three", "two"]


def test_an_index_larger_than_the_cache_is_compared_in_pages(reads, monkeypatch, settings):
    monkeypatch.setattr(vector_cache, "MIB", 1_000)
    settings.CONDUCTOR_AI_SEARCH_CACHE_MB = 1
    rows = numbers(100).tolist()
    store(rows)

    assert search(rows[7], count=1) == [("7", 0)]
    assert search(rows[8], count=1) == [("8", 0)]
    assert len(reads) == 4


def test_another_length_is_refused_also_when_the_index_was_read_before():
    store([[1.0, 0.0]])
    for _ in range(2):
        with pytest.raises(Invalid, match="The embedding has 3 numbers, but documents of the index docs have 2"):
            search([1, 0, 0])
        search([1, 0])
