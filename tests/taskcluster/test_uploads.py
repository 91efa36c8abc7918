"""Bodies as files for storages: read once, never as a whole."""

from io import BytesIO

import pytest

from conductor_app.core.errors import Invalid
from conductor_app.taskcluster.api.base import InputTooLarge, RequestBodyStream, RequestUpload


def in_drops(content: bytes, size: int = 2):
    """Yield the content in small chunks, as a network does."""
    source = BytesIO(content)
    return lambda count: source.read(min(count, size))


def test_a_storage_reads_as_many_bytes_as_it_requests():
    body = RequestBodyStream(in_drops(b"abcdefg"), 7, 100)

    assert (body.read(5), body.read(5), body.read(5)) == (b"abcde", b"fg", b"")


def test_a_body_is_not_read_past_its_declared_length():
    assert RequestBodyStream(in_drops(b"abcdefg"), 3, 100).read() == b"abc"


def test_a_body_without_a_length_ends_with_its_source():
    upload = RequestUpload(RequestBodyStream(in_drops(b"abcdefg"), None, 100))

    assert b"".join(upload.chunks()) == b"abcdefg"
    assert upload.size == 7


def broken(count: int) -> bytes:
    raise OSError("the client is gone")


FAULTS = {
    "ends early": (RequestBodyStream(in_drops(b"ab"), 3, 100), Invalid),
    "breaks off": (RequestBodyStream(broken, 3, 100), Invalid),
    "breaks off in pieces": (RequestBodyStream(broken, None, 100), Invalid),
    "is too large": (RequestBodyStream(in_drops(b"abcd"), None, 3), InputTooLarge),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_body_reports_why_it_cannot_be_read(case):
    body, read_error = FAULTS[case]

    with pytest.raises(read_error):
        body.read()
    assert type(body.read_error) is read_error


def test_a_body_cannot_seek_back():
    assert not RequestUpload(RequestBodyStream(in_drops(b"ab"), 2, 100)).seekable()
