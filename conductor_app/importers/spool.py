"""A temporary file for the documents of a source, so that what is saved is what the plan has shown."""

from tempfile import TemporaryFile
from typing import IO

from conductor_app.core.errors import Invalid
from conductor_app.json_values import MAX_DEPTH, is_too_deep, loads_repaired


class Spool:
    """JSON texts by their position in a file that only this process can open."""

    def __init__(self) -> None:
        self._file: IO[bytes] = TemporaryFile(prefix="conductor-import-")  # noqa: SIM115

    def append(self, text: bytes) -> int:
        """Store a text, and return its position."""
        position = self._file.seek(0, 2)
        self._file.write(len(text).to_bytes(8, "big"))
        self._file.write(text)
        return position

    def read(self, position: int) -> dict:
        """Return the document at a position.

        Raises:
            Invalid: when it is malformed, is not an object, or is nested too deeply.
        """
        self._file.seek(position)
        text = self._file.read(int.from_bytes(self._file.read(8), "big"))
        try:
            document = loads_repaired(text)
        except (ValueError, RecursionError) as error:
            raise Invalid(f"The document is not valid JSON: {str(error)[:200]}") from None
        if not isinstance(document, dict):
            raise Invalid(f"The document must be an object (got {text[:40].decode(errors='replace')}).")
        if is_too_deep(document, text, MAX_DEPTH):
            raise Invalid(f"The document is nested more than {MAX_DEPTH} levels deep.")
        return document

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
