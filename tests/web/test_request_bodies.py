"""Bodies that are compressed, in another charset, with a byte order mark, or with numbers that JSON does not have."""

import gzip
import json
import zlib
from random import randbytes

import pytest

from conductor_app.web.api.requests import decompress
from tests.builders import simple

DEFINITION = [{"name": "größe", "description": "ein Maß", "ownerEmail": "a@example.org", "retryCount": 1}]
TEXT = json.dumps(DEFINITION, ensure_ascii=False)


def deflated(body: bytes) -> bytes:
    """Return the body compressed without a header, as some clients mean `deflate`."""
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(body) + compressor.flush()


def post(api, body: bytes, content_type: str = "application/json", **headers: str):
    return api.client.generic("POST", "/api/metadata/taskdefs", body, content_type, headers=headers)


COMPRESSED = {
    "gzip": ("gzip", gzip.compress(TEXT.encode())),
    "gzip in capitals": ("GZIP", gzip.compress(TEXT.encode())),
    "gzip in two parts": ("gzip", gzip.compress(TEXT[:20].encode()) + gzip.compress(TEXT[20:].encode())),
    "deflate": ("deflate", zlib.compress(TEXT.encode())),
    "deflate without a header": ("deflate", deflated(TEXT.encode())),
    "identity": ("identity", TEXT.encode()),
}


@pytest.mark.parametrize("case", COMPRESSED)
def test_a_compressed_body_is_read(api, case):
    encoding, body = COMPRESSED[case]

    assert post(api, body, content_encoding=encoding).status_code == 200
    assert api.get("/metadata/taskdefs/größe").json()["description"] == "ein Maß"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "nonsense"])
def test_an_unknown_encoding_is_415_and_named(reader, encoding):
    reply = post(reader, b"{}", content_encoding=encoding)

    assert (reply.status_code, reply.json()["status"]) == (415, 415)
    assert repr(encoding) in reply.json()["message"]


BROKEN = {"plain": b"[]", "cut": gzip.compress(TEXT.encode())[:-9], "too short": b"\x1f\x8b"}


@pytest.mark.parametrize("case", BROKEN)
def test_a_body_that_is_not_compressed_as_it_says_is_refused(reader, case):
    body = BROKEN[case]

    reply = post(reader, body, content_encoding="gzip")

    assert reply.status_code == 400
    assert "gzip" in reply.json()["message"]


def test_the_limit_is_that_of_the_decompressed_body(reader, settings):
    bomb = gzip.compress(b" " * 100_000_000)

    settings.CONDUCTOR_MAX_REQUEST_BYTES = 1_000_000
    reply = post(reader, bomb, content_encoding="gzip")

    assert (reply.status_code, reply.json()["status"]) == (413, 413)


def test_the_number_of_compressed_parts_is_limited(api):
    parts = gzip.compress(b"") * 999 + gzip.compress(TEXT.encode())

    assert post(api, parts, content_encoding="gzip").status_code == 200
    reply = post(api, gzip.compress(b"") + parts, content_encoding="gzip")

    assert reply.status_code == 400
    assert "more than 1000 parts of gzip data" in reply.json()["message"]


def test_compressed_parts_larger_than_a_chunk_are_joined():
    words = [randbytes(150_000), b"", b"a" * 300_000, randbytes(65_536)]

    assert decompress(b"".join(map(gzip.compress, words)), "gzip", 1_000_000) == b"".join(words)


def test_a_compressed_text_is_read(api):
    body = gzip.compress("Wärme".encode())

    api.client.generic("PUT", "/api/environment/A", body, "text/plain", headers={"content-encoding": "gzip"})

    assert api.get("/environment/A").content.decode() == "Wärme"


ENCODED = {
    "UTF-8 with a mark": ("application/json", b"\xef\xbb\xbf" + TEXT.encode()),
    "UTF-8, declared": ('application/json; charset="UTF-8"', TEXT.encode()),
    "UTF-8, declared, with a mark": ("application/json; charset=utf-8", b"\xef\xbb\xbf" + TEXT.encode()),
    "Latin-1, declared": ("application/json; charset=iso-8859-1", TEXT.encode("latin-1")),
    "Windows-1252, declared": ("application/json;charset=windows-1252", TEXT.encode("cp1252")),
    "UTF-16, declared": ("application/json; charset=utf-16", TEXT.encode("utf-16")),
    "UTF-16LE, declared": ("application/json; charset=UTF-16LE", TEXT.encode("utf-16-le")),
    "UTF-16 with a mark": ("application/json", TEXT.encode("utf-16")),
    "UTF-16 without a mark": ("application/json", TEXT.encode("utf-16-be")),
    "UTF-32 with a mark": ("application/json", TEXT.encode("utf-32")),
}


@pytest.mark.parametrize("case", ENCODED)
def test_a_body_in_another_charset_is_read(api, case):
    content_type, body = ENCODED[case]

    assert post(api, body, content_type).status_code == 200
    assert api.get("/metadata/taskdefs/größe").json()["description"] == "ein Maß"


def test_a_text_in_another_charset_is_read(api):
    api.client.generic("PUT", "/api/environment/A", "Wärme".encode("latin-1"), "text/plain; charset=iso-8859-1")

    assert api.get("/environment/A").content.decode() == "Wärme"


@pytest.mark.parametrize("charset", ["klingon", "punycode", "unicode_escape", "hex", "idna", "utf-7"])
def test_an_unknown_charset_is_415_and_named(reader, charset):
    reply = post(reader, b"[]", f"application/json; charset={charset}")

    assert reply.status_code == 415
    assert repr(charset) in reply.json()["message"]


def test_a_body_that_is_no_text_in_its_charset_is_refused(reader):
    reply = post(reader, b"[1", "application/json; charset=utf-32")

    assert reply.status_code == 400
    assert "utf-32" in reply.json()["message"]


def report_text(task: dict, output: str | bytes, status: str = "COMPLETED", more: str = "") -> bytes:
    ids = f'"taskId":"{task["taskId"]}","workflowInstanceId":"{task["workflowInstanceId"]}","workerId":"tester"'
    content = output if isinstance(output, bytes) else output.encode()
    return f'{{{ids},"status":"{status}","outputData":'.encode() + content + f"{more}}}".encode()


@pytest.fixture
def task(api, clock):
    """Return a leased task, which is tried again once."""
    api.post("/metadata/taskdefs", [{"name": "pay", "retryCount": 1, "retryDelaySeconds": 0}])
    api.define(simple("pay"))
    api.start()
    [found] = api.poll("pay")
    return found


def attempts(api, task) -> list[dict]:
    return api.workflow(task["workflowInstanceId"])["tasks"]


@pytest.mark.parametrize("path", ["/tasks", "/tasks/update-v2"])
@pytest.mark.parametrize(
    ("output", "said"),
    [
        ('{"ratio": NaN}', "outputData.ratio is NaN."),
        ('{"ratio": -Infinity}', "outputData.ratio is -Infinity."),
        ('{"rows": [{"a": 1}, {"a": Infinity, "b": NaN}]}', "outputData.rows[1].a is Infinity."),
        ('{"text": "NaN \\ud800", "ratio": NaN}', "outputData.ratio is NaN."),
        ('{"a": NaN, "b": [1, -1e999]}', "Other values that cannot be read: 1."),
        ('{"ratio": -1e999}', "outputData.ratio is -1e999. The largest number is 1.79e308."),
        ('{"id": 1' + "0" * 400 + "}", "outputData.id is 1" + "0" * 29 + "… of 401 characters."),
        ('{"id": 1' + "0" * 5_000 + "}", "outputData.id is 1" + "0" * 29 + "… of 5001 characters."),
        (b'{"names": ["a\xff"]}', "outputData.names[0] is text that is not UTF-8. Send the body as UTF-8."),
        (b'{"a\xff": 1}', "outputData is an object with a name that is not UTF-8."),
        ('{"a": ' + "[" * 250 + "]" * 250 + "}", "nested more than 200 levels deep"),
        ('{"a": ' + '[{"[": "\\"["}, ' * 3_000 + "{}" + "]" * 3_000 + "}", "nested more than 200 levels deep"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_report_that_cannot_be_read_fails_its_attempt_at_once_and_says_why(api, task, path, output, said):
    reply = api.post(path, report_text(task, output))

    assert reply.status_code == 400
    assert said in reply.json()["message"]
    first, second = attempts(api, task)
    assert (first["status"], second["status"]) == ("FAILED", "SCHEDULED")
    assert said in first["reasonForIncompletion"]
    assert first["outputData"] == {}


def test_a_repeated_report_with_nan_changes_nothing(api, task):
    api.post("/tasks", report_text(task, '{"ratio": NaN}'))
    [again] = api.poll("pay")

    reply = api.post("/tasks", report_text(task, '{"ratio": NaN}'))

    assert reply.status_code == 400
    assert [each["status"] for each in attempts(api, task)] == ["FAILED", "IN_PROGRESS"]
    api.report(again)
    assert api.workflow(task["workflowInstanceId"])["status"] == "COMPLETED"


def test_a_final_failure_with_nan_stays_final(api, task):
    api.post("/tasks", report_text(task, '{"ratio": NaN}', "FAILED_WITH_TERMINAL_ERROR"))

    assert [each["status"] for each in attempts(api, task)] == ["FAILED_WITH_TERMINAL_ERROR"]


def test_an_extension_of_a_lease_with_nan_fails_no_attempt(api, task):
    reply = api.post("/tasks", report_text(task, '{"ratio": NaN}', "IN_PROGRESS", ',"extendLease":true'))

    assert reply.status_code == 400
    assert [each["status"] for each in attempts(api, task)] == ["IN_PROGRESS"]


@pytest.mark.parametrize("end", ["", "/sync"])
@pytest.mark.parametrize(("number", "said"), [("NaN", "ratio is NaN"), ("1e999", "ratio is 1e999")])
def test_a_worker_that_reports_nan_by_reference_fails_its_attempt(api, task, end, number, said):
    path = f"/tasks/{task['workflowInstanceId']}/{task['referenceTaskName']}/COMPLETED{end}"

    reply = api.post(f"{path}?workerid=tester", f'{{"ratio": {number}}}'.encode())

    assert reply.status_code == 400
    assert said in attempts(api, task)[0]["reasonForIncompletion"]


def test_a_caller_without_a_worker_can_correct_nan_by_reference(api, task):
    path = f"/tasks/{task['workflowInstanceId']}/{task['referenceTaskName']}/COMPLETED"

    assert api.post(path, b'{"ratio": NaN}').status_code == 400
    assert api.post(path, b'{"ratio": null}').status_code == 200

    assert api.workflow(task["workflowInstanceId"])["status"] == "COMPLETED"


@pytest.mark.parametrize("output", ['{"a": 1,}', '{"a": 1e999,}', "[" * 3_000, "[" * 3_000 + '"' + '\\"' * 100_000])
def test_a_report_that_is_no_json_changes_nothing(api, task, output):
    assert api.post("/tasks", report_text(task, output)).status_code == 400

    assert [each["status"] for each in attempts(api, task)] == ["IN_PROGRESS"]


def test_nan_without_a_task_is_named(reader):
    replies = [reader.post("/tasks", b'{"outputData": {"a": NaN}}'), reader.post("/tasks", b"NaN")]

    assert [reply.status_code for reply in replies] == [400, 400]
    assert "outputData.a is NaN" in replies[0].json()["message"]
    assert "it is NaN" in replies[1].json()["message"]


def test_other_mistakes_beside_nan_are_reported_as_such(reader):
    reply = reader.post("/workflow", b'{"input": {"a": NaN, }}')

    assert "is NaN" not in reply.json()["message"]
