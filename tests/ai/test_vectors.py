"""Tasks on indexes: texts are stored with their embeddings, and the nearest ones are found."""

import json

import pytest

from conductor_app.ai.commands.budgets import BudgetLimits, save_budget
from conductor_app.ai.models import Integration, ModelUsage, VectorDocument
from conductor_app.ai.workers import vectors
from conductor_app.system_tasks.registry import run_built_in_workers, slow_queues
from tests.ai.embedding_server import running_embedding_server, vector
from tests.builders import policy
from tests.scenario import Scenario, run_commit_hooks

pytestmark = pytest.mark.django_db
PETS, CARGO = "A cat and a dog", "A truck and a ship, and another ship"


@pytest.fixture
def server(settings):
    settings.CONDUCTOR_HTTP_TASK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    with running_embedding_server() as server:
        Integration.objects.create(
            name="local", category="AI_MODEL", kind="openai", configuration={"base_url": server.url}
        )
        yield server


def task(type, **inputs):
    return {"name": "task", "taskReferenceName": "task", "type": type, "retryCount": 0, "inputParameters": inputs}


def perform(clock, type, **inputs):
    """Run a workflow with one task; return its attempt."""
    run = Scenario(clock, task(type, **{"vectorDB": "default", "index": "docs", **inputs}), name=f"w {type}")
    with run_commit_hooks():
        run_built_in_workers(queues=slow_queues())
    return run.task("task")


def index(clock, text, **inputs):
    model = {"embeddingModelProvider": "local", "embeddingModel": "words"}
    return perform(clock, "LLM_INDEX_TEXT", **model, **{"text": text, "docId": "doc", **inputs})


def search(clock, query, **inputs):
    model = {"embeddingModelProvider": "local", "embeddingModel": "words"}
    return perform(clock, "LLM_SEARCH_INDEX", **model, query=query, **inputs)


def test_the_nearest_text_is_found_by_a_query(clock, server):
    for number, text in enumerate((PETS, CARGO)):
        stored = index(clock, text, docId=f"doc {number}", namespace="all", metadata={"number": number})
        assert (stored.status, stored.output) == ("COMPLETED", {"result": 1})

    found = search(clock, "dog cat", namespace="all")

    assert found.output == {
        "result": [{"docId": "doc 0", "parentDocId": "doc 0", "text": PETS, "score": 0.0, "metadata": {"number": 0}}]
    }


def test_results_come_in_the_order_of_their_distance(clock, server):
    for name, embedding in (("far", [9, 0]), ("near", [1, 0]), ("same", [0, 0])):
        perform(clock, "LLM_STORE_EMBEDDINGS", id=name, embeddings=embedding, namespace="n")

    found = perform(clock, "LLM_SEARCH_EMBEDDINGS", embeddings=[0, 0], namespace="n", maxResults=2).output["result"]
    assert [(each["docId"], each["score"]) for each in found] == [("same", 0.0), ("near", 1.0)]
    # The deprecated name searches in the same way.
    again = perform(clock, "LLM_GET_EMBEDDINGS", embeddings=[0, 0], namespace="n", maxResults=9).output["result"]
    assert [each["docId"] for each in again] == ["same", "near", "far"]


@pytest.mark.parametrize(
    ("metric", "distances"),
    [("l2", {"a": 1.0, "b": 2.0**0.5}), ("cosine", {"a": 0.0, "b": 1.0}), ("inner_product", {"a": -2.0, "b": 0.0})],
)
def test_the_integration_chooses_the_metric(clock, metric, distances):
    Integration.objects.create(
        name="vectors", category="VECTOR_DB", kind="pgvectordb", configuration={"distanceMetric": metric}
    )
    for name, embedding in (("a", [2, 0]), ("b", [0, 1])):
        perform(clock, "LLM_STORE_EMBEDDINGS", vectorDB="vectors", id=name, embeddings=embedding)

    found = perform(clock, "LLM_SEARCH_EMBEDDINGS", vectorDB="vectors", embeddings=[1, 0], maxResults=9)
    assert {each["docId"]: pytest.approx(each["score"]) for each in found.output["result"]} == distances


def test_a_vector_of_zeros_has_the_cosine_distance_one(clock):
    Integration.objects.create(
        name="vectors", category="VECTOR_DB", kind="postgres", configuration={"distanceMetric": "cosine"}
    )
    perform(clock, "LLM_STORE_EMBEDDINGS", vectorDB="vectors", id="zeros", embeddings=[0, 0])

    [found] = perform(clock, "LLM_SEARCH_EMBEDDINGS", vectorDB="vectors", embeddings=[1, 0]).output["result"]
    assert found["score"] == 1.0


def test_without_a_namespace_a_search_compares_the_whole_index(clock, server):
    index(clock, PETS, docId="pets")
    index(clock, CARGO, docId="cargo")

    [found] = search(clock, "ship").output["result"]
    assert found["docId"] == "cargo"
    assert sorted(VectorDocument.objects.values_list("namespace", flat=True)) == ["cargo", "pets"]


def test_another_index_or_database_is_not_searched(clock):
    perform(clock, "LLM_STORE_EMBEDDINGS", id="a", embeddings=[1], index="other")
    perform(clock, "LLM_STORE_EMBEDDINGS", id="a", embeddings=[1], vectorDB="postgres")

    assert perform(clock, "LLM_SEARCH_EMBEDDINGS", embeddings=[1]).output == {"result": []}


def test_a_long_text_is_split_into_chunks_that_overlap(clock, server):
    text = "cat dog ship truck apple pear red green " * 3
    stored = index(clock, text, chunkSize=40, chunkOverlap=10)

    rows = list(VectorDocument.objects.order_by("id"))
    assert stored.output == {"result": len(rows)}
    assert len(rows) > 3
    assert {(row.parent_id, row.namespace) for row in rows} == {("doc", "doc")}
    assert sorted(row.document_id for row in rows) == [f"doc#{number}" for number in range(len(rows))]
    assert all(len(row.text) <= 40 for row in rows)
    assert len(server.requests) == 1


def test_a_text_that_is_indexed_again_replaces_its_earlier_chunks(clock, server):
    index(clock, "cat " * 30, chunkSize=40, chunkOverlap=0)
    assert VectorDocument.objects.count() > 1
    index(clock, "ship", docId="another", namespace="doc")
    index(clock, "dog")

    assert sorted(VectorDocument.objects.values_list("document_id", "text")) == [("another", "ship"), ("doc", "dog")]


def test_many_chunks_are_embedded_in_several_calls(clock, server):
    index(clock, "".join(f"cat {number:03} " for number in range(300)), chunkSize=8, chunkOverlap=0)

    assert [len(asked["input"]) for asked in server.requests] == [100, 100, 100]
    assert ModelUsage.objects.get().calls == 3


def test_a_document_without_an_id_gets_one(clock):
    assert perform(clock, "LLM_STORE_EMBEDDINGS", embeddings=[1]).output == {"result": 1}
    assert VectorDocument.objects.get().document_id


def test_a_stored_document_is_replaced_under_its_id(clock):
    for value in (1, 2):
        perform(clock, "LLM_STORE_EMBEDDINGS", id="a", embeddings=[value], metadata={"value": value})

    assert VectorDocument.objects.get().metadata == {"value": 2}


STORE, INDEX, SEARCH = "LLM_STORE_EMBEDDINGS", "LLM_INDEX_TEXT", "LLM_SEARCH_EMBEDDINGS"
TEXT = {"docId": "a", "text": "x"}
INVALID = {
    "an unknown database": (STORE, {"vectorDB": "none", "embeddings": [1]}, "VectorDB not found: none"),
    "no database": (STORE, {"vectorDB": "${workflow.input.none}", "embeddings": [1]}, "`vectorDB` is missing"),
    "a docId of blanks": (INDEX, {"docId": " ", "text": "x"}, "`docId` is empty"),
    "no text": (INDEX, {"docId": "a"}, "`text` is missing"),
    "an address instead of a text": (INDEX, {"docId": "a", "url": "http://x/"}, "with an HTTP task first"),
    "a chunk size of zero": (INDEX, {**TEXT, "chunkSize": 0}, "`chunkSize` must be at least 1"),
    "a chunk size that is no number": (INDEX, {**TEXT, "chunkSize": "many"}, "must be a whole number"),
    "an overlap as large as a chunk": (INDEX, {**TEXT, "chunkSize": 4, "chunkOverlap": 4}, "less than `chunkSize`"),
    "too many chunks": (INDEX, {"docId": "a", "text": "x" * 50_000, "chunkSize": 2}, "more than 2000 chunks"),
    "an unknown integration": (INDEX, {**TEXT, "embeddingModelProvider": "none"}, "no integration named 'none'"),
    "an embedding that is a text": (STORE, {"embeddings": "1"}, "must be a list of numbers"),
    "an embedding with a text": (STORE, {"embeddings": [1, "2"]}, "must be a list of numbers"),
    "an embedding with a Boolean": (STORE, {"embeddings": [True]}, "must be a list of numbers"),
    "an embedding with a number beyond 32 bits": (STORE, {"embeddings": [1e300]}, "finite"),
    "an embedding with an integer beyond a float": (STORE, {"embeddings": [10**400]}, "finite"),
    "too many numbers": (STORE, {"embeddings": [0] * 16_385}, "1 to 16384 numbers"),
    "metadata that are a list": (STORE, {"embeddings": [1], "metadata": [1]}, "`metadata` must be an object"),
    "a name that is a list": (STORE, {"embeddings": [1], "namespace": [1]}, "`namespace` must be a text"),
    "no results": (SEARCH, {"embeddings": [1], "maxResults": 0}, "`maxResults` must be at least 1"),
}


@pytest.mark.parametrize(("type", "inputs", "reason"), INVALID.values(), ids=INVALID)
def test_an_invalid_input_is_a_terminal_failure(clock, type, inputs, reason):
    model = {"embeddingModelProvider": "local", "embeddingModel": "words"} if type == INDEX else {}
    attempt = perform(clock, type, **{**model, **inputs})

    assert (attempt.status, attempt.reason.startswith("Non-retryable error: ")) == ("FAILED_FOR_GOOD", True)
    assert reason in attempt.reason
    assert not VectorDocument.objects.exists()


def test_a_name_that_is_too_long_fails_without_a_stack_trace(clock):
    attempt = perform(clock, "LLM_STORE_EMBEDDINGS", embeddings=[1], namespace="x" * 256)

    assert (attempt.status, attempt.reason) == ("FAILED", "`namespace` must have at most 255 characters, without NUL.")


def test_an_embedding_of_another_length_fails_with_both_lengths(clock):
    perform(clock, "LLM_STORE_EMBEDDINGS", id="a", embeddings=[1, 2], namespace="n")
    stored = perform(clock, "LLM_STORE_EMBEDDINGS", id="b", embeddings=[1, 2, 3], namespace="n")
    found = perform(clock, "LLM_SEARCH_EMBEDDINGS", embeddings=[1, 2, 3], namespace="n")

    assert (stored.status, found.status) == ("FAILED", "FAILED")
    assert "has 3 numbers, but those of the namespace 'n' have 2" in stored.reason
    assert "has 3 numbers, but documents of the index docs have 2" in found.reason


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"is_enabled": False}, "is disabled"),
        ({"kind": "pineconedb"}, "stores vectors in its own database"),
        (
            {"configuration": {"distanceMetric": "manhattan"}},
            "`distanceMetric` of the integration vectors must be",
        ),
        ({"configuration": {"dimensions": "many"}}, "`dimensions` of the integration vectors must be 1 to 16384"),
        ({"configuration": {"dimensions": 3}}, "have 3"),
    ],
)
def test_the_settings_of_the_integration_are_checked(clock, fields, reason):
    Integration.objects.create(**{"name": "vectors", "category": "VECTOR_DB", "kind": "pgvectordb"} | fields)
    attempt = perform(clock, "LLM_STORE_EMBEDDINGS", vectorDB="vectors", embeddings=[1])

    assert attempt.status in ("FAILED", "FAILED_FOR_GOOD")
    assert reason in attempt.reason


def test_an_index_beyond_the_limit_is_not_searched(clock, settings):
    settings.CONDUCTOR_AI_SEARCH_MAX_DOCUMENTS = 1
    for name in ("a", "b"):
        perform(clock, "LLM_STORE_EMBEDDINGS", id=name, embeddings=[1], namespace=name)

    attempt = perform(clock, "LLM_SEARCH_EMBEDDINGS", embeddings=[1])
    assert attempt.status == "FAILED"
    assert "more than 1 documents, the maximum of one search (AI_SEARCH_MAX_DOCUMENTS)" in attempt.reason
    assert perform(clock, "LLM_SEARCH_EMBEDDINGS", embeddings=[1], namespace="a").status == "COMPLETED"


def test_a_search_is_complete_over_several_pages(clock, monkeypatch):
    monkeypatch.setattr("conductor_app.ai.queries.vectors.PAGE_ROWS", 3)
    for number in range(8):
        perform(clock, "LLM_STORE_EMBEDDINGS", id=f"{number}", embeddings=[number], namespace=f"{number % 3}")

    found = perform(clock, "LLM_SEARCH_EMBEDDINGS", embeddings=[5.1], maxResults=8).output["result"]
    assert [each["docId"] for each in found] == ["5", "6", "4", "7", "3", "2", "1", "0"]


def test_a_spent_budget_holds_a_search_before_its_call(clock, server):
    save_budget(BudgetLimits("INTEGRATION", "local", "DAY", max_tokens=0), "olga")
    attempt = search(clock, "cat")

    assert (attempt.status, attempt.visible_at > clock.now()) == ("PENDING", True)
    assert server.requests == []


def test_a_failed_call_of_the_model_fails_the_task_and_can_be_retried(clock, server):
    server.status = 500
    attempt = index(clock, PETS)

    assert attempt.status == "FAILED"
    assert not VectorDocument.objects.exists()


def test_a_retry_pays_only_for_the_calls_that_have_no_reply(clock, server, monkeypatch):
    monkeypatch.setattr(vectors, "TEXTS_PER_CALL", 1)
    model = {"embeddingModelProvider": "local", "embeddingModel": "words", "vectorDB": "default", "index": "docs"}
    step = task("LLM_INDEX_TEXT", **model, text="cat dog", docId="doc", chunkSize=4, chunkOverlap=0)
    run = Scenario(clock, {**step, "retryCount": 1, "taskDefinition": policy("task", retries=1)})
    server.statuses = [200, 500]
    for _ in range(2):
        with run_commit_hooks():
            run_built_in_workers(queues=slow_queues())

    assert (run.status, run.attempts("task")) == ("COMPLETED", ["FAILED", "COMPLETED"])
    assert [asked["input"] for asked in server.requests] == [["cat "], ["dog"], ["dog"]]


def test_vectors_keep_32_bits(clock):
    perform(clock, "LLM_STORE_EMBEDDINGS", id="a", embeddings=[0.1, -2.5])

    import numpy

    assert numpy.frombuffer(bytes(VectorDocument.objects.get().embedding), "<f4").tolist() == [
        pytest.approx(0.1, abs=1e-7),
        -2.5,
    ]
    assert json.dumps(vector("cat dog")) == "[1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]"
