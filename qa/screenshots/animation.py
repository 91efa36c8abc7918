"""Animated WebP files from still ones, which a browser can encode (the container format of WebP, RFC 9649)."""

from collections.abc import Iterator, Sequence


def animated_webp(stills: Sequence[bytes], width: int, height: int, milliseconds: int) -> bytes:
    """Return an animation that shows each still for a time, in an endless loop.

    `stills`: WebP files of the same size in pixels.
    """
    has_animation = 0b10
    size = _number(width - 1) + _number(height - 1)
    chunks = _chunk(b"VP8X", bytes((has_animation, 0, 0, 0)) + size)
    chunks += _chunk(b"ANIM", bytes(4) + bytes(2))
    for still in stills:
        picture = b"".join(_chunk(name, data) for name, data in _chunks(still) if name in (b"VP8 ", b"VP8L", b"ALPH"))
        do_not_blend = 0b10
        frame = _number(0) + _number(0) + size + _number(milliseconds) + bytes((do_not_blend,)) + picture
        chunks += _chunk(b"ANMF", frame)
    return b"RIFF" + (len(chunks) + 4).to_bytes(4, "little") + b"WEBP" + chunks


def _number(value: int) -> bytes:
    return value.to_bytes(3, "little")


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + len(data).to_bytes(4, "little") + data + bytes(len(data) % 2)


def _chunks(file: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = 12
    while position + 8 <= len(file):
        length = int.from_bytes(file[position + 4 : position + 8], "little")
        yield file[position : position + 4], file[position + 8 : position + 8 + length]
        position += 8 + length + length % 2
