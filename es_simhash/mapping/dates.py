"""Dates as a server reads them from documents. A date in a format that is not known here is never guessed."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from math import floor
from typing import Any

# The formats of a field whose mapping names none.
_DEFAULT = "strict_date_optional_time||epoch_millis"
_DEFAULT_OF_NANOS = "strict_date_optional_time_nanos||epoch_millis"
# The last millisecond of a date_nanos, which is a number of nanoseconds in 63 bits.
_LAST_OF_NANOS = (2**63 - 1) // 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Later moments have no four digits of the year.
_LAST = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
# A server reads no digits of other scripts, so no \d here.
_DAY = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_FRACTION = r"(?:[.,](?P<fraction>[0-9]{1,9}))"
_ZONE = r"(?P<zone>Z|[+-](?:18(?::?00)?|(?:0[0-9]|1[0-7])(?::?[0-5][0-9])?))"

# A year before 1 is matched and not read: the next format would take it for a number. Hours with a zone and without
# minutes are only read by the strict one of the two formats of this name.
_OPTIONAL_TIME = re.compile(
    rf"(?P<year>-?[0-9]{{4}})(?:-(?P<month>[0-9]{{2}})(?:-(?P<day>[0-9]{{2}})"
    rf"(?:T(?P<hour>[0-9]{{2}})(?::(?P<minute>[0-9]{{2}})(?::(?P<second>[0-9]{{2}}){_FRACTION}?)?{_ZONE}?)?)?)?)?"
)

# The names without "strict_" also accept shorter numbers, such as 2026-1-2; those are not read here.
_PATTERNS = {
    "date_optional_time": _OPTIONAL_TIME,
    "date_optional_time_nanos": re.compile(
        rf"(?P<year>-?[0-9]{{4}})(?:-(?P<month>[0-9]{{2}})(?:-(?P<day>[0-9]{{2}})(?:T{_TIME}{_FRACTION}?{_ZONE}?)?)?)?"
    ),
    "date": re.compile(_DAY),
    "date_time": re.compile(rf"{_DAY}T{_TIME}{_FRACTION}{_ZONE}"),
    "date_time_no_millis": re.compile(rf"{_DAY}T{_TIME}{_ZONE}"),
    "date_hour_minute_second": re.compile(rf"{_DAY}T{_TIME}"),
    "yyyy-MM-dd": re.compile(_DAY),
    "uuuu-MM-dd": re.compile(_DAY),
    "yyyy-MM-dd HH:mm:ss": re.compile(rf"{_DAY} {_TIME}"),
    "uuuu-MM-dd HH:mm:ss": re.compile(rf"{_DAY} {_TIME}"),
    "yyyy-MM-dd'T'HH:mm:ss": re.compile(rf"{_DAY}T{_TIME}"),
    "uuuu-MM-dd'T'HH:mm:ss": re.compile(rf"{_DAY}T{_TIME}"),
}

_MILLIS = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]{1,6})?")
# What servers make of "-0" and "-1.5" is no moment, or another one.
_SECONDS = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,6})?|-[1-9][0-9]{0,14}")


def milliseconds_of(value: Any, date_format: str | None = None, *, of_nanos: bool = False) -> int | None:
    """
    Return the moment that a server reads from *value*, in whole milliseconds since 1970, or ``None``.
    ``None``: the format or value is not read here. A date without a zone is in UTC, as on the server. *date_format* is
    the ``format`` of the mapping, if it has one. *of_nanos*: the field is a ``date_nanos``.
    """
    if isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    # A server reads a number as the text that stands in the JSON, so 2026 is a year.
    text = value if isinstance(value, str) else repr(value)
    for name in (date_format or (_DEFAULT_OF_NANOS if of_nanos else _DEFAULT)).split("||"):
        reader = _reader(name.strip().removeprefix("strict_"))
        if reader is None:
            return None  # a format before the one that fits may be the one that the server takes
        try:
            found = reader(text)
        except (ValueError, OverflowError):
            return None  # no day of a calendar, or one that Python does not have, such as in year 0
        if found is not None:
            return None if of_nanos and not 0 <= found <= _LAST_OF_NANOS else floor(found)
    return None


@lru_cache(maxsize=16)  # the documents of a batch have the same moment
def to_moment(milliseconds: int) -> str:
    """Return a number of milliseconds since 1970 as ``simhash.at`` holds moments: ISO 8601, UTC, milliseconds."""
    whole = min(milliseconds, (_LAST - _EPOCH) // timedelta(milliseconds=1))
    moment = _EPOCH + timedelta(milliseconds=whole)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _reader(name: str) -> Callable[[str], Decimal | None] | None:
    if name == "epoch_millis":
        return lambda text: Decimal(text) if _MILLIS.fullmatch(text) else None
    if name == "epoch_second":
        return lambda text: Decimal(text) * 1000 if _SECONDS.fullmatch(text) else None
    pattern = _PATTERNS.get(name)
    return None if pattern is None else lambda text: _read_calendar(pattern, text)


def _read_calendar(pattern: re.Pattern[str], text: str) -> Decimal | None:
    match = pattern.fullmatch(text)
    if match is None:
        return None
    found = match.groupdict()
    numbers = [int(found.get(name) or least) for name, least in _PARTS]
    moment = datetime(*numbers, tzinfo=UTC) - _offset(found.get("zone"))  # type: ignore[misc, arg-type]
    passed = moment - _EPOCH
    seconds = Decimal(passed.days) * 86_400 + passed.seconds
    return seconds * 1000 + Decimal(int((found.get("fraction") or "0").ljust(9, "0"))) / 1_000_000


_PARTS = (("year", 1), ("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0))


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone == "Z":
        return timedelta(0)
    digits = zone[1:].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -size if zone[0] == "-" else size
