"""Tasks that compute embeddings, store them in indexes, and search for the nearest ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.errors import Invalid
from ...core.expressions import quote_value
from ...core.primitives import split_text
from ...core.step_types.ai import (
    LlmGenerateEmbeddings,
    LlmGetEmbeddings,
    LlmIndexText,
    LlmSearchEmbeddings,
    LlmSearchIndex,
    LlmStoreEmbeddings,
)
from ...system_tasks.registry import WorkResult
from ...tasks.store import ClaimedAttempt
from ..commands.budgets import CallHeld
from ..commands.calls import Usage
from ..commands.integrations import ModelSettings, model_settings
from ..commands.vectors import (
    Document,
    Place,
    VectorDatabase,
    pack_embedding,
    replace_parts,
    store_documents,
    vector_database,
)
from ..queries.vectors import FoundDocument, VectorSearch, search_documents
from . import trials as providers
from .calls import TASK_ERRORS, ModelWorker, estimate_texts, failed_result, paid_call
from .messages import CallFailed, InputRejected, whole_number, without_keys

CHUNK_SIZE, CHUNK_OVERLAP = 12_000, 400
"""The default length of a chunk and of the overlap, in characters (Conductor's defaults)."""
MAX_CHUNKS = 2_000
TEXTS_PER_CALL = 100
MAX_RESULTS = 1_000


class GenerateEmbeddings(ModelWorker):
    """Turns a text into a vector."""

    type = LlmGenerateEmbeddings.type

    def call(self, attempt: ClaimedAttempt, inputs: dict[str, Any], settings: ModelSettings) -> WorkResult:
        """Return the vector as `result`."""
        text = inputs.get("text")
        if not isinstance(text, str) or not text.strip():
            raise InputRejected("text must not be blank")
        dimensions = whole_number(inputs, "dimensions") or None
        return WorkResult("COMPLETED", {"result": embed(attempt, settings, [text], dimensions)[0]})


class VectorWorker(ModelWorker):
    """Base of the tasks on indexes. An invalid input is a terminal failure, as in Conductor."""

    def work_on(self, attempt: ClaimedAttempt) -> WorkResult | None:
        """Execute the task. Returns None if it was put back because a budget has no room."""
        try:
            return self.work(attempt, self.inputs_of(attempt) or {})
        except CallHeld:
            return None
        except TASK_ERRORS as error:
            return failed_result(error, attempt.poll_count)

    def work(self, attempt: ClaimedAttempt, inputs: dict[str, Any]) -> WorkResult:
        """Execute the task with its resolved inputs.

        Raises:
            RequestRefused: when the input is invalid.
            CallFailed: when a call has no reply.
            CallHeld: when a budget has no room for a call.
        """
        raise NotImplementedError


class IndexText(VectorWorker):
    """Splits a text into chunks and stores them with their embeddings, in place of earlier chunks of the document."""

    type = LlmIndexText.type

    def work(self, attempt: ClaimedAttempt, inputs: dict[str, Any]) -> WorkResult:
        document_id = _text(inputs, "docId", is_required=True)
        place, database = _place(inputs, default_namespace=document_id)
        metadata = _metadata(inputs)
        chunks = _chunks(inputs)
        embeddings = _compute_embeddings(attempt, inputs, chunks)
        names = [document_id] if len(chunks) == 1 else [f"{document_id}#{number}" for number in range(len(chunks))]
        documents = [
            Document(name, embedding, chunk, metadata, document_id)
            for name, embedding, chunk in zip(names, embeddings, chunks, strict=True)
        ]
        try:
            count = replace_parts(place, document_id, documents, database.dimensions)
        except Invalid as error:
            return WorkResult("FAILED", {}, error.message)
        return WorkResult("COMPLETED", {"result": count})


class StoreEmbeddings(VectorWorker):
    """Stores one embedding under an id."""

    type = LlmStoreEmbeddings.type

    def work(self, attempt: ClaimedAttempt, inputs: dict[str, Any]) -> WorkResult:
        document_id = _text(inputs, "id") or _text(inputs, "docId") or attempt.id
        place, database = _place(inputs)
        embedding = _embedding(inputs)
        document = Document(document_id, embedding, _text(inputs, "text"), _metadata(inputs))
        try:
            count = store_documents(place, [document], database.dimensions)
        except Invalid as error:
            return WorkResult("FAILED", {}, error.message)
        return WorkResult("COMPLETED", {"result": count})


class SearchEmbeddings(VectorWorker):
    """Returns the documents that are nearest to an embedding."""

    type = LlmSearchEmbeddings.type

    def work(self, attempt: ClaimedAttempt, inputs: dict[str, Any]) -> WorkResult:
        return _search(inputs, _embedding(inputs))


class GetEmbeddings(SearchEmbeddings):
    """The deprecated name of the search by embedding."""

    type = LlmGetEmbeddings.type


class SearchIndex(VectorWorker):
    """Returns the documents that are nearest to the embedding of a text."""

    type = LlmSearchIndex.type

    def work(self, attempt: ClaimedAttempt, inputs: dict[str, Any]) -> WorkResult:
        query = _text(inputs, "query", is_required=True)
        _place(inputs)  # An invalid name costs no call.
        embeddings = _compute_embeddings(attempt, inputs, [query])
        return _search(inputs, embeddings[0])


def embed(
    attempt: ClaimedAttempt, settings: ModelSettings, texts: list[str], dimensions: int | None
) -> list[list[float]]:
    """Return the vectors of texts, by one paid call.

    Raises:
        CallFailed: when there is no reply.
        CallHeld: when a budget has no room.
        InputRejected: when the provider has no embeddings.
    """

    def send(key: str) -> tuple[dict[str, Any], Usage]:
        vectors, tokens = providers.embed(settings, texts, dimensions, key)
        return {"vectors": vectors}, Usage(prompt_tokens=tokens)

    content = ["embed", texts, dimensions]
    vectors: list[list[float]] = paid_call(attempt, settings, content, send, estimate_texts(texts))["vectors"]
    return vectors


def _compute_embeddings(attempt: ClaimedAttempt, inputs: Mapping[str, Any], texts: Sequence[str]) -> list[list[float]]:
    """Return the embeddings of texts, by one call for each TEXTS_PER_CALL."""
    provider = _text(inputs, "embeddingModelProvider", is_required=True)
    model = _text(inputs, "embeddingModel", is_required=True)
    dimensions = _number(inputs, "dimensions", 0, least=0) or None
    settings = model_settings(provider, model)
    embeddings: list[list[float]] = []
    for begin in range(0, len(texts), TEXTS_PER_CALL):
        try:
            embeddings += embed(attempt, settings, list(texts[begin : begin + TEXTS_PER_CALL]), dimensions)
        except CallFailed as failure:
            reason = without_keys(failure.reason, settings)
            raise CallFailed(reason, failure.wait_seconds, failure.is_final) from None
    return embeddings


def _search(inputs: Mapping[str, Any], embedding: Sequence[float]) -> WorkResult:
    place, database = _place(inputs)
    pack_embedding(embedding)
    count = _number(inputs, "maxResults", 1, least=1)
    namespace = place.namespace or None
    request = VectorSearch(place.database, place.index, namespace, database.metric, embedding, min(count, MAX_RESULTS))
    try:
        found = search_documents(request)
    except Invalid as error:
        return WorkResult("FAILED", {}, error.message)
    return WorkResult("COMPLETED", {"result": [_serialize(each) for each in found]})


def _serialize(found: FoundDocument) -> dict[str, Any]:
    """Return a document as Conductor's `IndexedDoc`."""
    document = found.document
    return {
        "docId": document.document_id,
        "parentDocId": document.parent_id or document.document_id,
        "text": document.text,
        "score": found.score,
        "metadata": document.metadata,
    }


def _place(inputs: Mapping[str, Any], default_namespace: str = "") -> tuple[Place, VectorDatabase]:
    database = vector_database(_text(inputs, "vectorDB", is_required=True))
    index = _text(inputs, "index", is_required=True)
    return Place(database.name, index, _text(inputs, "namespace") or default_namespace), database


def _chunks(inputs: Mapping[str, Any]) -> list[str]:
    text = _text(inputs, "text")
    if not text and inputs.get("url"):
        raise Invalid(
            "`text` is missing. Load the document of `url` with an HTTP task first: this task downloads nothing."
        )
    if not text:
        raise Invalid("`text` is missing.")
    size = _number(inputs, "chunkSize", CHUNK_SIZE, least=1)
    overlap = _number(inputs, "chunkOverlap", min(CHUNK_OVERLAP, size // 2), least=0)
    if overlap >= size:
        raise Invalid(f"`chunkOverlap` ({overlap}) must be less than `chunkSize` ({size}).")
    if len(text) > size and (len(text) - overlap) / max(size // 2 - overlap, 1) > MAX_CHUNKS:
        raise Invalid(f"The text would have more than {MAX_CHUNKS} chunks. Enlarge `chunkSize`, or split the text.")
    return list(split_text(text, size, overlap))


def _embedding(inputs: Mapping[str, Any]) -> Sequence[float]:
    embedding = inputs.get("embeddings")
    if not isinstance(embedding, list) or not embedding:
        raise Invalid("`embeddings` must be a list of numbers.")
    pack_embedding(embedding)
    return embedding


def _metadata(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = inputs.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise Invalid("`metadata` must be an object.")
    return metadata


def _text(inputs: Mapping[str, Any], name: str, *, is_required: bool = False) -> str:
    value = inputs.get(name)
    if value is None or value == "":
        if is_required:
            raise Invalid(f"`{name}` is missing.")
        return ""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise Invalid(f"`{name}` must be a text.")
    text = str(value)
    if is_required and not text.strip():
        raise Invalid(f"`{name}` is empty.")
    return text


def _number(inputs: Mapping[str, Any], name: str, default: int, *, least: int) -> int:
    value = inputs.get(name)
    if value is None or value == "":
        return default
    try:
        number = int(str(value))
    except ValueError:
        raise Invalid(f"`{name}` must be a whole number (got {quote_value(value, 40)}).") from None
    if number < least:
        raise Invalid(f"`{name}` must be at least {least} (got {number}).")
    return number
