"""A request as it is sent."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """One request, with what a report says about it."""

    number: int
    area: str
    template: str
    caller: str
    method: str
    encoded: bytes
    can_wait: bool = False
    ends_connection: bool = False
    """The request is framed wrongly, so bytes of it may remain after the reply."""

    def describe(self) -> str:
        head, _, body = self.encoded.partition(b"\r\n\r\n")
        return f"request {self.number} ({self.template}, caller {self.caller}):\n{head[:4000]!r}\n{body[:4000]!r}"
