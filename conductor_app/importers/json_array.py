"""Splitting of a JSON array into the texts of its items while it is received, so that a long list needs no memory."""

from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from json import JSONDecodeError, JSONDecoder

SPACE = " \t\r\n"
BYTE_ORDER_MARK = "\ufeff"
_decoder = JSONDecoder()


class ArrayMalformed(Exception):
    """The text is not a JSON array. The message says what it is instead."""


def split_array(chunks: Iterable[bytes], max_item_length: int) -> Iterator[bytes]:
    """Yield the texts of the items.

    Raises:
        ArrayMalformed: when the text is not a complete JSON array, or an item is longer than the limit.
    """
    splitter = _Splitter(max_item_length)
    decode = getincrementaldecoder("utf-8")(errors="replace").decode
    for chunk in chunks:
        yield from splitter.feed(decode(chunk))
    yield from splitter.finish()


class _Splitter:
    """The text that is received but not yet split. `has_begun`: the bracket of the array has been received."""

    def __init__(self, max_item_length: int) -> None:
        self._max_item_length = max_item_length
        self._text = ""
        self._needed = 0
        self._has_begun = self._has_ended = False
        self._count = 0

    def feed(self, text: str) -> Iterator[bytes]:
        """Yield the items that are complete now. What follows the array is ignored."""
        self._text += text
        # An item that is still incomplete is tried again when twice as much is received: otherwise the time would grow
        # with the square of its length.
        if self._has_ended or len(self._text) < self._needed or not (self._has_begun or self._enter()):
            return
        place = 0
        while (found := self._next_item(place)) is not None:
            start, place = found
            yield self._text[start:place].encode("utf-8", "surrogatepass")
        self._text = self._text[self._rest :]
        self._needed = 2 * len(self._text)
        if len(self._text) > self._max_item_length:
            raise ArrayMalformed(f"a list with an item of more than {self._max_item_length >> 20} MiB")

    def _enter(self) -> bool:
        begun = self._text.lstrip(SPACE + BYTE_ORDER_MARK)
        if not begun:
            return False
        if not begun.startswith("["):
            raise ArrayMalformed(f"a text that begins with {begun[:40]!r}")
        self._text, self._has_begun = begun[1:], True
        return True

    def _next_item(self, place: int) -> tuple[int, int] | None:
        """Return where the next item starts and ends, or None if it is not complete."""
        self._rest = place
        start = self._skip_space(place)
        if self._text[start : start + 1] == "]":
            self._has_ended = True
            return None
        if self._count:
            if self._text[start : start + 1] != ",":
                self._require_no(self._text[start : start + 1], ",")
                return None
            start = self._skip_space(start + 1)
        try:
            _, end = _decoder.raw_decode(self._text, start)
        except JSONDecodeError:
            return None
        except RecursionError:
            raise ArrayMalformed("a list with an item that is nested too deeply") from None
        # A number could continue in the next chunk.
        if end == len(self._text):
            return None
        self._count += 1
        return start, end

    def _require_no(self, mark: str, expected: str) -> None:
        if mark:
            raise ArrayMalformed(f"a malformed list: {expected!r} is missing after item {self._count}")

    def _skip_space(self, place: int) -> int:
        while place < len(self._text) and self._text[place] in SPACE:
            place += 1
        return place

    def finish(self) -> Iterator[bytes]:
        """Yield the remaining items.

        Raises:
            ArrayMalformed: when the array has not ended.
        """
        self._needed = 0
        yield from self.feed("")
        if not self._has_ended:
            after = f"a list that breaks off, or is malformed, after item {self._count}"
            raise ArrayMalformed(after if self._has_begun else "nothing")
