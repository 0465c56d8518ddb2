"""The login that a client holds, taken out of what servers and clients say: a server or a proxy may repeat it."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

HIDDEN = "***"

_LOGS_IN = re.compile("auth|cookie|key|secret|token", re.IGNORECASE)
_SCHEMES = {"apikey", "basic", "bearer", "digest", "negotiate", "sharedsecret"}
# What is shorter stands in any text.
_SHORTEST = 4


class Secrets:
    """What the *values* of headers that log in hold, in each form in which it may be repeated."""

    def __init__(self, *values: str) -> None:
        forms = {form for value in values for secret in _secrets(value) for form in _forms(secret)}
        known = sorted((form for form in forms if len(form) >= _SHORTEST), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, known)) or "(?!)", re.IGNORECASE)

    def hide(self, said: Any) -> Any:
        """Return *said*, text or JSON values, without the login."""
        if isinstance(said, str):
            hidden = self._pattern.sub(HIDDEN, said)
            return said if hidden == said else hidden
        if type(said) is bytes:
            return self.hide(said.decode("latin-1")).encode("latin-1")
        if type(said) in (list, tuple):
            return type(said)(map(self.hide, said))
        if type(said) is dict:
            return {self.hide(key): self.hide(value) for key, value in said.items()}
        return said

    def hide_in(self, error: BaseException) -> None:
        """Take the login out of all that *error*, what it holds, and what led to it say."""
        waiting: list[Any] = [error]
        seen: set[int] = set()
        while waiting:
            found = waiting.pop()
            if not isinstance(found, BaseException) or id(found) in seen:
                continue
            seen.add(id(found))
            found.args = self.hide(found.args)
            vars(found).update(self.hide(vars(found)))
            held = [part for value in vars(found).values() for part in (value if type(value) is tuple else [value])]
            waiting += [*found.args, *held, found.__cause__, found.__context__]


@lru_cache(maxsize=64)
def secrets_of(*values: str) -> Secrets:
    """Return the secrets in these values of headers, made once."""
    return Secrets(*values)


def login_in(*headers: Any) -> Iterator[str]:
    """Yield the values of those of *headers* that log in; what is no mapping has none."""
    for given in headers:
        if isinstance(given, Mapping):
            yield from (str(value) for name, value in given.items() if _LOGS_IN.search(str(name)))


def _secrets(value: str) -> Iterator[str]:
    """Yield what is secret in the *value* of a header: its token, a pair of user and password in it, each cookie."""
    scheme, _, token = value.partition(" ")
    token = token if scheme.lower() in _SCHEMES else value
    yield token
    for word in re.split(r"[\s;,]+", token):
        yield from (word, word.partition("=")[2])
    try:
        pair = base64.b64decode(token, validate=True).decode()
    except ValueError:
        return
    if ":" in pair:
        yield from (pair, pair.partition(":")[2])


def _forms(secret: str) -> Iterator[str]:
    yield from (secret, quote(secret, safe=""), quote_plus(secret), html.escape(secret), json.dumps(secret)[1:-1])
    yield repr(secret)[1:-1]
