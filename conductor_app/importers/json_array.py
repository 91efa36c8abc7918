"""Splitting of a JSON array into the texts of its items while it is received, so that a long list needs no memory."""

from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from itertools import chain
from json import JSONDecodeError, JSONDecoder

SPACE = " \t\r\n"
BYTE_ORDER_MARK = "\ufeff"
_decoder = JSONDecoder()


class ArrayMalformed(Exception):
    """The text is not a JSON array. The message says what it is instead."""


def split_array(chunks: Iterable[bytes], max_item_length: int) -> Iterator[bytes]:
    """Yield the texts of the items. What follows the array is ignored.

    Raises:
        ArrayMalformed: when the text is not a complete JSON array, or an item is longer than the limit.
    """
    decode = getincrementaldecoder("utf-8")(errors="replace").decode
    text, needed, count, has_begun = "", 0, 0, False
    for chunk in chain(chunks, (None,)):
        text += decode(chunk or b"")
        # An item that is still incomplete is tried again when twice as much is received: otherwise the time would grow
        # with the square of its length.
        if len(text) < needed and chunk is not None:
            continue
        if not has_begun:
            text = text.lstrip(SPACE + BYTE_ORDER_MARK)
            if not text:
                continue
            if text[0] != "[":
                raise ArrayMalformed(f"a text that begins with {text[:40]!r}")
            text, has_begun = text[1:], True
        place = 0
        while (start := _skip_space(text, place)) < len(text):
            if text[start] == "]":
                return
            if count and text[start] != ",":
                raise ArrayMalformed(f"a malformed list: ',' is missing after item {count}")
            start = _skip_space(text, start + 1) if count else start
            end = _end_of_item(text, start)
            # A number could continue in the next chunk.
            if end is None or end == len(text):
                break
            yield text[start:end].encode("utf-8", "surrogatepass")
            count, place = count + 1, end
        text = text[place:]
        needed = 2 * len(text)
        if len(text) > max_item_length:
            raise ArrayMalformed(f"a list with an item of more than {max_item_length >> 20} MiB")
    raise ArrayMalformed(f"a list that breaks off, or is malformed, after item {count}" if has_begun else "nothing")


def _skip_space(text: str, place: int) -> int:
    while place < len(text) and text[place] in SPACE:
        place += 1
    return place


def _end_of_item(text: str, start: int) -> int | None:
    """Return where an item ends, or None if it is not complete."""
    try:
        return _decoder.raw_decode(text, start)[1]
    except JSONDecodeError:
        return None
    except RecursionError:
        raise ArrayMalformed("a list with an item that is nested too deeply") from None
