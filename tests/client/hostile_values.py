"""Values that no argument of a kind can have."""

from __future__ import annotations

HALF = "\ud800"
LONG = "x" * 100_000
DEEP = {"a": 1}
for _ in range(500):
    DEEP = {"a": DEEP}


class Unfriendly:
    """Is nothing that anybody asks for."""

    def __repr__(self):
        return "two\nlines " * 100


THING = Unfriendly()
NUMBERS = ("5", [5], {}, THING, float("nan"), float("inf"), -1, 10**400, 10**5000, True)
NAMES = (5, b"x", THING, "", " ", HALF, ["a"], {"a": 1})
KEYS = tuple(each for each in NAMES if each != " ")  # an id and a routing may be of blanks
FIELDS = (*NAMES, "a..b", ".a", "a.", ".")
LISTS = (5, THING, "name", {"a": 1}, b"x")
OBJECTS = (5, "text", [5], THING, {5: 1}, {"a": HALF}, {"a": {HALF: 1}}, DEEP)

HOSTILE = {
    "count": (*NUMBERS, 1.5),
    "flag": ("no", "", 0, 1, None, THING, []),
    "index": (5, THING, "", " ", HALF, ["a", ""], ["a", 5], [], {"a": 1}, {"a"}, "a,,b", "news::data"),
    "one index": (5, THING, "", " ", HALF, ["a"], [], {"a": 1}),
    "share": (*NUMBERS, 1.5),
    "seconds": ("5", [5], THING, float("nan"), float("inf"), -1, 0, True),
    "pipeline name": (*NAMES, "a*", "a,b", "a/b", "a b", "?x"),
    "seed": (*NUMBERS, 1.5, None),
    "name": (*NAMES, None),
    "id": (*KEYS, None),
    "routing": KEYS,
    "field": FIELDS,
    "fields": (5, THING, b"a", {"a": 1}, "", " ", HALF, "a..b", ["a", ""], ["a", 5], ["a", "a"], [HALF], {"a"}, []),
    "field names": (*LISTS, [""], [5], [HALF], ["a..b"], None),
    "source": (5, THING, HALF, [5], [""], [HALF], {"a": 1}, None),
    "ids": (*LISTS, [""], [5], [HALF], None),
    "object": OBJECTS,
    "filter": (*OBJECTS, {}, {"a": 1, "b": 2}, [{}]),
    "choices": (5, THING, "few", ["same"], ["no such"], [THING], {"few": 1}),
    "choice": (5, THING, "", "no such", LONG, ["tag"], {"tag": 1}),
    "canonical": (5, THING, "", [], ["id", "id"], HALF, f"a:{HALF}", "-", "a:", LONG + ":", [5], "a..b"),
    "pair": (
        5,
        THING,
        "",
        "a",
        ("a",),
        ("", "7d"),
        ("a", LONG),
        (LONG, "x"),
        (HALF, "7d"),
        ("a..b", "7d"),
        ("a", "7y"),
    ),
    "similarity": ("1", "yes", str, [1], THING, -0.1, 1.1, 1.5, float("nan"), 10**400),
    "path": (5, THING, None, "", "/", HALF, "a\0b", b"x", "/no such folder/file"),
    "path or none": (5, THING, "", "/", HALF, "a\0b", b"x", "/no such folder/file"),
    "function": (5, "text", THING),
    "scheme": (5, THING, "", "no such", LONG, HALF, ["shingles"]),
    "preset": (5, THING, "", "no such", "nearly", LONG, ["near"]),
    "moment": (5, THING, "", "yesterday", LONG, HALF),
    "documents": (5, THING, "text", {"body": "a"}, None, b"x"),
    "texts": (5, THING, "text", {"a": 1}, b"x"),
    "text": (5, THING, b"x", ["a"]),
    "fingerprint": ("5", "ff", THING, -1, 1 << 64, 10**400, 1.0, 1.5, True),
    "prefix": (*NAMES, "a.b", "_a", "-a", "a'", "新", "a\n", "a b", LONG + " ", None),
    "patterns": (*LISTS, [], [""], [5], [HALF], None),
    "hits": (5, THING, "text", {"a": 1}, [5], ["a"], None),
    "digits": (5, THING, "", "xyz", "F" * 16, "0x23456789abcdef", "0123_456789abcdef", "\uff10" + "1" * 15, LONG, None),
    "whole": ("5", THING, 1.5, -1, True, None),
    "hashes": (5, THING, "text", ["a"], [1.5], [True], [-1], [1 << 64], None),
    "paths": (5, THING, "text", "/", [5], [HALF], ["/no such file"]),
    "removals": (5, THING, None, "", "/", HALF, [], [5], ["/no such file"]),
}
"""For each kind of argument values that cannot be used."""
