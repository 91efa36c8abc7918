"""Time-ordered ids (the layout of UUID version 7) that are worked out, not drawn: the core knows no chance."""

from base64 import urlsafe_b64encode
from hashlib import blake2b


def derived_id(now: int, *parts: object, place: int | None = None) -> str:
    """An id that sorts by `now` (milliseconds), then by `place` if it has one, and is the same for the same parts."""
    digest = blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=10).digest()
    tail = int.from_bytes(digest, "big")
    if place is not None:
        # 16 bits count within the millisecond, around the 6 that say what kind of id this is; 58 are left to the parts.
        tail = tail & (2**58 - 1) | (place >> 4 & 0xFFF) << 64 | (place & 0xF) << 58
    number = (now & (2**48 - 1)) << 80 | tail
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def lowest_id_at(moment: int) -> str:
    """What every id made at this moment or later sorts behind, and no earlier one."""
    text = f"{moment & (2**48 - 1):012x}"
    return f"{text[:8]}-{text[8:]}"


def stable_fraction(*parts: object) -> float:
    """A number from 0 up to 1 that looks drawn by chance and is the same for the same parts."""
    return int.from_bytes(blake2b("\0".join(map(str, parts)).encode(), digest_size=7).digest(), "big") / 2**56


def slug_id(drawn: str) -> str:
    """An id as Taskcluster's clients make them, of 32 hexadecimal digits: it never begins with a dash."""
    number = int(drawn, 16) & ~(1 << 127)
    number = number & ~(0xF << 76) | 0x4 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    return urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")
