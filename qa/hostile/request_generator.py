"""Builds random requests: each from a seed and a number, so that a report can name it."""

import gzip
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

from qa.hostile import values
from qa.hostile.accounts import CSRF_TOKEN, Accounts, hawk_header
from qa.hostile.endpoints import CONDUCTOR, OTHERS, PAGES, PARAMETER, TASKCLUSTER, Endpoint
from qa.hostile.hostile_request import Request
from qa.hostile.objects import BODIES, Objects, standalone_task

SHARES = {CONDUCTOR: 50, TASKCLUSTER: 20, PAGES: 27, OTHERS: 3}
"""How many of 100 requests each area gets."""
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get", "X" * 30)
CONTENT_TYPES = (
    "application/json", "application/json; charset=utf-16", "application/json; charset=x\xff", "text/plain", "", "a",
    "/", "application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=latin-1",
    "text/plain; charset=utf-8",
    "multipart/form-data; boundary=x", "multipart/form-data", "text/xml",
    "application/octet-stream", "application/json;;;=", "multipart/form-data; boundary=" + "y" * 300,
)  # fmt: skip
HEADERS: dict[str, tuple[str, ...]] = {
    "Accept": ("*/*", "application/json", "text/html", "application/xml", "x", ";q=9", "text/*;q=" + "9" * 50),
    "Accept-Language": ("de", "xx-YY", "de;q=a", "*" * 200, "\xff"),
    "Accept-Encoding": ("gzip", "br", "identity;q=0", "x"),
    "X-HTTP-Method-Override": ("DELETE", "x"),
    "Range": ("bytes=0-1", "bytes=9-1", "bytes=-", "bytes=0-9999999999999999999", "lines=1", "bytes=0-0,1-1"),
    "If-None-Match": ('"x"', "*", "x", 'W/"'),
    "If-Modified-Since": ("x", "Thu, 01 Jan 1970 00:00:00 GMT", "Thu, 99 Xxx 99999 99:99:99 GMT"),
    "Origin": ("http://evil.example", "null", "x", "http://[", "http://127.0.0.1"),
    "Sec-Fetch-Site": ("cross-site", "same-origin", "x"),
    "Referer": ("http://evil.example/", "x", "http://[::1"),
    "X-Forwarded-For": ("1.2.3.4", "x", "::1, " * 50),
    "X-Forwarded-Proto": ("https", "x"),
    "X-Forwarded-Host": ("evil.example", "a b"),
    "X-Taskcluster-Trace-Id": ("abc", "\xff", "x" * 500),
    "Traceparent": ("00-x", "00-" + "f" * 32 + "-" + "f" * 16 + "-01", "\xff"),
    "X-Requested-With": ("XMLHttpRequest",),
    "X-Fragment": ("1",),
    "Idempotency-Key": ("x" * 500,),
    "Cookie": ("a", "=", "sessionid=../../x", "csrftoken=; sessionid=\"", "x=" + "y" * 3000, "\xff=\xfe"),
    "Expect": ("100-continue", "x"),
}  # fmt: skip
FRAMINGS = (
    "Content-Length: -1", "Content-Length: abc", "Content-Length: 99999999999999999999",
    "Content-Length: 1\r\nContent-Length: 2",
    "Transfer-Encoding: chunked\r\nContent-Length: 3", "Transfer-Encoding: x", "Transfer-Encoding: chunked, identity",
    "Content-Length: +1", "Content-Length: 1_0",
)  # fmt: skip
"""Headers that say wrongly where the body ends."""


class Generator:
    """Builds requests for a server with certain objects."""

    def __init__(
        self,
        seed: int,
        port: int,
        endpoints: Sequence[Endpoint],
        accounts: Accounts,
        objects: Objects,
        has_framings: bool,
    ) -> None:
        self._seed, self._port, self._accounts, self._objects = seed, port, accounts, objects
        self._has_framings = has_framings
        self._endpoints = {area: [each for each in endpoints if each.area == area] for area in SHARES}

    def build(self, number: int) -> Request:
        """Return the request with this number."""
        source = random.Random(f"{self._seed}:{number}")
        area = source.choices(list(SHARES), list(SHARES.values()))[0]
        endpoint = source.choice(self._endpoints[area])
        method = self._method(endpoint, source)
        target = self._target(endpoint, method, source)
        headers: list[tuple[str, str]] = [("Host", f"127.0.0.1:{self._port}")]
        body, kind = self._body(endpoint, method, source)
        if kind is not None:
            headers.append(("Content-Type", kind))
        caller = self._authenticate(area, method, target, headers, source)
        for name in source.sample(list(HEADERS), source.choice([0, 0, 0, 1, 2])):
            headers.append((name, source.choice(HEADERS[name])))
        return self._frame(number, endpoint, caller, method, target, headers, body, source)

    def _method(self, endpoint: Endpoint, source: random.Random) -> str:
        if source.random() < 0.88:
            return source.choice(list(endpoint.bodies))
        return source.choice(METHODS)

    def _target(self, endpoint: Endpoint, method: str, source: random.Random) -> str:
        path = PARAMETER.sub(lambda found: self._path_value(found[1], endpoint.template, source), endpoint.template)
        if source.random() < 0.01:
            path = source.choice(
                [path + "/", path + "/..", path + "//x", "/." + path, path + ";x=1", path.upper(), path + "?"]
            )
        query = self._query(endpoint, method, source)
        return (f"{path}?{query}" if query else path)[:8_100]

    def _path_value(self, name: str, template: str, source: random.Random) -> str:
        known, kind = self._objects.known(name, template), source.random()
        if known and kind < 0.65:
            return quote(source.choice(known), safe=source.choice(["", "/"]))
        if kind < 0.8:
            return source.choice(
                [
                    str(UUID(int=source.getrandbits(128), version=4)),
                    "1",
                    "99999",
                    "x",
                    "a" * 22,
                    "AAAAAAAAAAAAAAAAAAAAAA",
                ]
            )
        return quote(values.random_text(source)[:1_000], source.choice(["", "/:"]), errors="surrogatepass") or "x"

    def _query(self, endpoint: Endpoint, method: str, source: random.Random) -> str:
        documented = endpoint.query.get(method, {})
        form = self._objects.forms.get(endpoint.template)
        names = (
            list(documented)
            or sorted((form.query | set(form.fields)) if form else ())
            or ["limit", "continuationToken"]
        )
        pairs: list[tuple[str, str]] = []
        for name in source.sample(names, min(len(names), source.choice([0, 1, 1, 2, 3, 5]))):
            for _ in range(1 if source.random() < 0.95 else 3):
                pairs.append((name, self._query_value(name, documented.get(name, {}), source)))
        if source.random() < 0.03:
            return source.choice(
                ["&", "=", "%", "a=%ff&b=%00", "?" * 10, "a[]=1&a[b]=2", "x" * 5_000, "&".join(["a=1"] * 1_500)]
            )
        return urlencode(pairs, errors="surrogatepass")

    def _query_value(self, name: str, schema: Mapping[str, Any], source: random.Random) -> str:
        if source.random() < 0.6:
            value = values.example_of(schema, source, self._known_value, name)
            return value if isinstance(value, str) else json.dumps(value)
        return values.random_text(source) if source.random() < 0.7 else str(source.choice(values.NUMBERS))

    def _known_value(self, name: str) -> Any:
        known = self._objects.ids.get(name)
        return random.Random(f"{self._seed}:{name}").choice(known) if known else None

    def _body(self, endpoint: Endpoint, method: str, source: random.Random) -> tuple[bytes | None, str | None]:
        """Return the body with its content type."""
        if method in ("GET", "HEAD", "OPTIONS", "TRACE") and source.random() < 0.95:
            return None, None
        if source.random() < 0.001:
            return source.choice(
                [b"[" * 9_000_000, b'{"a":"' + b"x" * 21_000_000 + b'"}', b" " * 3_000_000]
            ), "application/json"
        if endpoint.area == PAGES:
            return self._form(endpoint, source)
        body = values.encode(self._document(endpoint, method, source), source)
        if source.random() < 0.9:
            return body, "application/json"
        return body, source.choice(CONTENT_TYPES)

    def _document(self, endpoint: Endpoint, method: str, source: random.Random) -> Any:
        if source.random() < 0.08:
            return values.random_value(source)
        address = PARAMETER.sub(r"<\1>", endpoint.template)
        schema = endpoint.bodies.get(method)
        if (method, address) in BODIES:
            document = BODIES[method, address]
        elif method == "PUT" and address == "/api/queue/v1/task/<taskId>":
            document = standalone_task()
        else:
            document = values.example_of(schema or {"type": "object"}, source, self._known_value)
        return document if source.random() < 0.3 else values.mutate(document, source)

    def _form(self, endpoint: Endpoint, source: random.Random) -> tuple[bytes, str]:
        form = self._objects.forms.get(endpoint.template)
        fields: dict[str, Any] = dict(form.fields) if form else {}
        fields["csrfmiddlewaretoken"] = CSRF_TOKEN if source.random() < 0.85 else values.random_text(source)
        for name in source.sample(list(fields), min(len(fields), source.choice([0, 1, 2, 4]))):
            if name != "csrfmiddlewaretoken":
                fields[name] = values.random_text(source)
        if source.random() < 0.2 and len(fields) > 1:
            del fields[source.choice(list(fields))]
        if source.random() < 0.15:
            return _multipart(fields, source), "multipart/form-data; boundary=x"
        body = urlencode(fields, errors="surrogatepass").encode()
        if source.random() < 0.05:
            body = source.choice(
                [body + b"&" + b"a=1&" * 2_000, body + b"&x=%ff%fe%00", body[: len(body) // 2], b"\xff" + body]
            )
        return body, "application/x-www-form-urlencoded" if source.random() < 0.97 else source.choice(CONTENT_TYPES)

    def _authenticate(
        self, area: str, method: str, target: str, headers: list[tuple[str, str]], source: random.Random
    ) -> str:
        """Add credentials. Return the name of the caller."""
        if source.random() < 0.04:
            name = source.choice(["X-Authorization", "Authorization"])
            headers.append((name, source.choice(
                ["x", "", "Bearer x", "Basic !!", "Hawk", 'Hawk id="\xff", mac="', "a.b.c", "eyJhbGciOiJub25lIn0.e30.",
                 "x" * 9_000,
                 'Hawk id="a", ts="x", nonce="n", mac="m", ext="////"']
            )))  # fmt: skip
            return "false credentials"
        if area == TASKCLUSTER and source.random() < 0.9:
            client_id = _choose_mostly(next(iter(self._accounts.clients)), self._accounts.clients, source)
            key = self._accounts.clients[client_id] if source.random() < 0.97 else "wrong"
            headers.append(("Authorization", hawk_header(client_id, key, method, target, self._port)))
            return client_id
        if area == PAGES or (area == CONDUCTOR and source.random() < 0.06):
            # The other sessions end with their first sign-out, so that only one group signs out.
            group = "Viewers" if "logout" in target else _choose_mostly("root", self._accounts.sessions, source)
            cookie = f"sessionid={self._accounts.sessions[group]}"
            if source.random() < 0.97:
                headers.append(("Cookie", f"{cookie}; csrftoken={CSRF_TOKEN}"))
                if source.random() < 0.5:
                    headers.append(("X-CSRFToken", CSRF_TOKEN))
                return f"session {group}"
        elif source.random() < 0.96:
            role = _choose_mostly("ADMIN", self._accounts.tokens, source)
            headers.append(("X-Authorization", self._accounts.tokens[role]))
            return f"token {role}"
        return "anonymous"

    def _frame(
        self, number: int, endpoint: Endpoint, caller: str, method: str, target: str, headers: list[tuple[str, str]],
        body: bytes | None, source: random.Random,
    ) -> Request:  # fmt: skip
        """Put the request together."""
        is_framed_wrongly = self._has_framings and source.random() < 0.005
        content = body or b""
        if is_framed_wrongly:
            name, _, value = source.choice(FRAMINGS).partition(": ")
            headers.append((name, value))
        elif body is not None:
            if source.random() < 0.02:
                headers.append(("Content-Encoding", source.choice(["gzip", "deflate", "x"])))
                content = gzip.compress(content) if source.random() < 0.5 else content
            if source.random() < 0.05:
                headers.append(("Transfer-Encoding", "chunked"))
                content = _chunked(content, source)
            else:
                headers.append(("Content-Length", str(len(content))))
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "", ""]
        encoded = "\r\n".join(lines).encode("latin-1", "replace") + content
        has_expectation = any(name == "Expect" for name, _ in headers)
        ends = is_framed_wrongly or len(content) > 1_000_000 or has_expectation
        can_wait = endpoint.can_wait or is_framed_wrongly or has_expectation
        return Request(number, endpoint.area, endpoint.template, caller, method, encoded, can_wait, ends)


def _multipart(fields: Mapping[str, Any], source: random.Random) -> bytes:
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    ]
    name = source.choice(["file", "bundle", "upload"])
    parts.append(f'--x\r\nContent-Disposition: form-data; name="{name}"; filename="../../x.json"\r\n\r\n{{"a": [}}\r\n')
    return "".join([*parts, source.choice(["--x--\r\n", "--x", ""])]).encode(errors="replace")


def _chunked(content: bytes, source: random.Random) -> bytes:
    size = source.choice([1_000, 65_536])
    pieces = [content[place : place + size] for place in range(0, len(content), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def _choose_mostly(usual: str, accounts: Mapping[str, str], source: random.Random) -> str:
    """Return the name of one account: `usual` more often than any other."""
    return source.choices(list(accounts), [10 if name == usual else 1 for name in accounts])[0]
