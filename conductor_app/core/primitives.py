"""Time-ordered ids in the layout of UUID version 7, derived from their inputs instead of random."""

import re
from base64 import urlsafe_b64encode
from hashlib import blake2b

ID_PATTERN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def derived_id(now: int, *parts: object, place: int | None = None) -> str:
    """Return an id that sorts by `now` (milliseconds), then by `place`, and is the same for the same parts."""
    digest = blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=10).digest()
    tail = int.from_bytes(digest, "big")
    if place is not None:
        # `place` takes 16 bits below the millisecond, around the 6 bits of version and variant; the parts get 58 bits.
        tail = tail & (2**58 - 1) | (place >> 4 & 0xFFF) << 64 | (place & 0xF) << 58
    number = (now & (2**48 - 1)) << 80 | tail
    number = number & ~(0xF << 76) | 0x7 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def lowest_id_at(moment: int) -> str:
    """Return the lower bound of all ids made at this time (milliseconds) or later."""
    text = f"{moment & (2**48 - 1):012x}"
    return f"{text[:8]}-{text[8:]}"


def stable_fraction(*parts: object) -> float:
    """Return a pseudorandom number in [0, 1) that is the same for the same parts."""
    return int.from_bytes(blake2b("\0".join(map(str, parts)).encode(), digest_size=7).digest(), "big") / 2**56


def slug_id(drawn: str) -> str:
    """Return 32 hexadecimal digits as a Taskcluster slug id, which never begins with a dash."""
    number = int(drawn, 16) & ~(1 << 127)
    number = number & ~(0xF << 76) | 0x4 << 76
    number = number & ~(0x3 << 62) | 0x2 << 62
    return urlsafe_b64encode(number.to_bytes(16, "big")).decode().rstrip("=")
