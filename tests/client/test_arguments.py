"""
Public methods and functions refuse what cannot be used: one line, an error of ours, and before the first request.

Each parameter has a kind, and each kind its hostile values. A parameter that the table does not have fails a test.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import es_simhash
from es_simhash import SimHashClient, SimHashError
from es_simhash.arguments import Count, option, parameters, private
from es_simhash.errors import shorten
from tests.client.hostile_values import DEEP, HOSTILE, THING

LONGEST = 500
TOOLS = Path(__file__).parents[2] / "tools"
NAMES_OF = {
    "index": "index against",
    "object": "body mappings settings",
    "routing": "after routing sha256",
    "fields": "text_field",
    "choice": "on_duplicate op_type id_from sort use_as lookups keep language numbers",
    "pipeline name": "name",
    "similarity": "verify similarity min_contained",
    "count": (
        "min_run max_distance workers memory_bytes batch min_size size slices limit sample priority distance bits"
    ),
    "share": "max_share",
    "seconds": "interval",
    "one index": "state_index",
    "field": "per time_field source_field",
    "pair": "within",
    "moment": "since",
    "ids": "exclude_ids ids",
    "field names": "show",
    "choices": "also",
    "paths": "decisions",
    "id": "id first second id_",
    "texts": "texts fingerprints passages",
    "documents": "documents actions",
    "function": "on_problem progress",
    "patterns": "index_patterns",
    "name": "component",
    "whole": "a b",
    "removals": "paths",
    "path or none": "queries",
}
OWN = "preset seed canonical filter source path scheme text fingerprint prefix digits hits hashes"
KINDS = {name: name for name in OWN.split()} | {
    name: kind for kind, names in NAMES_OF.items() for name in names.split()
}
"""The kind of each parameter of the client's methods and of functions; those of the type ``bool`` are flags."""


class RequestSentError(Exception):
    """A client was asked for something."""


class NoServer:
    """A search client without a server: whatever is asked of it fails."""

    transport = None  # what writes its JSON is looked at, which is no request

    def __getattr__(self, name):
        raise RequestSentError(name)


CLIENT = SimHashClient(NoServer(), dialect="elasticsearch")

METHODS = [name for name, _ in inspect.getmembers(SimHashClient, inspect.isfunction) if not name.startswith("_")]

BESIDE = {
    ("find_near_dups", "fingerprint"): {"text": None},
    ("find_near_dups_many", "fingerprints"): {"texts": None},
    ("stream_near_dups_many", "fingerprints"): {"texts": None},
}
"""Other arguments that a call needs, so that a parameter is looked at."""

ONE_INDEX = ("build_dashboards", "create_index", "ingest", "make_dashboards", "restore", "screen", "tag_written")
OTHER_KINDS = {
    **{(method, "index"): "one index" for method in ONE_INDEX},
    **{(method, "text_field"): "field" for method in ("stats", "make_dashboards", "build_dashboards")},
    ("size", "documents"): "count",
    ("plan_removal", "after"): "paths",
    ("plan_removal", "path"): "path or none",
    ("restore", "path"): "removals",
}
"""Parameters that a method means otherwise than the rest."""


def _parameters(call) -> Iterator[tuple[str, inspect.Parameter]]:
    for name, parameter in inspect.signature(call).parameters.items():
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.annotation != "bool | None":
            yield name, parameter


def _kind(method: str, name: str, parameter: inspect.Parameter) -> str:
    return "flag" if parameter.annotation == "bool" else OTHER_KINDS.get((method, name)) or KINDS[name]


def _describe(value):
    return type(value).__name__ if value is THING or value is DEEP else shorten(value, limit=60)


def _judge(call, arguments, name, value) -> str | None:
    """Return what is wrong with the answer to a hostile *value*; ``None`` if nothing is."""
    try:
        result = call(**{**arguments, name: value})
        if isinstance(result, Iterator):
            list(result)
    except SimHashError as error:
        message = str(error)
        if len(message) > LONGEST or "\n" in message or not message.isprintable():
            return f"{_describe(value)}: a message of {len(message)} characters: {message[:200]!r}"
        return None
    except Exception as error:  # noqa: BLE001 -- to be reported
        return f"{_describe(value)}: {type(error).__name__}: {str(error)[:200]}"
    return f"{_describe(value)}: accepted"


def _refuses(call, arguments, name, kind, parameter) -> list[str]:
    values = HOSTILE[kind]
    if parameter.default is not inspect.Parameter.empty:
        values = [value for value in values if value is not None or parameter.default is not None]
    return [wrong for value in values if (wrong := _judge(call, arguments, name, value))]


HITS = [{"_id": "1", "_index": "news", "fields": {"simhash.fingerprint": ["00000000000000ff"]}}]

FUNCTIONS = [
    *(name for name in es_simhash.__all__ if inspect.isfunction(getattr(es_simhash, name)) and name != "schemes"),
    "Verification",
]
"""The functions, and the class that people make; ``schemes`` has no parameter."""

UNCHECKED = {"value", "passages", "ahead", "weights"}
"""Of functions: flags, of which anything says yes or no, and weights."""

FUNCTION_ARGUMENTS = {
    "id_": "1",
    "paths": [__file__],
    "fingerprint": 255,
    "hits": HITS,
    "index_patterns": ["news-*"],
    "digits": "00000000000000ff",
    "preset": "near",
    "scheme": "shingles",
    "a": 1,
    "b": 2,
    "text_field": "body",
    "max_distance": 3,
    "hashes": [1, 2],
    "language": "kql",
    "distance": 3,
}


@pytest.fixture
def usable(tmp_path):
    """Arguments that can be used, by name."""
    return {
        "index": "news",
        "body": {},
        "name": "news",
        "id": "1",
        "first": "1",
        "second": "2",
        "text": "The boat leaves at nine.",
        "texts": ["The boat leaves at nine."],
        "documents": [{"body": "a"}],
        "ids": ["1"],
        "actions": [{"body": "a"}],
        "path": str(tmp_path / "removal.db"),
    }


def _needed(call, usable):
    """Return usable arguments for all parameters that have no default, or that are a question."""
    parameters = inspect.signature(call).parameters
    asked = ("text", "texts", "first" if call == CLIENT.explain else None)
    return {
        name: usable[name]
        for name, each in parameters.items()
        if (each.default is inspect.Parameter.empty or name in asked) and each.kind is not each.VAR_KEYWORD
    }


@pytest.mark.parametrize("method", METHODS)
def test_methods_refuse_what_cannot_be_used_before_any_request(method, usable):
    call = getattr(CLIENT, method)
    for name, parameter in _parameters(call):
        arguments = {**_needed(call, usable), **BESIDE.get((method, name), {})}
        wrong = _refuses(call, arguments, name, _kind(method, name, parameter), parameter)
        assert not wrong, "\n".join([name, *wrong])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_refuse_what_cannot_be_used(function, usable):
    call = getattr(es_simhash, function)
    arguments = _needed(call, {**usable, **FUNCTION_ARGUMENTS})
    for name, parameter in _parameters(call):
        if name not in UNCHECKED:
            wrong = _refuses(call, arguments, name, _kind(function, name, parameter), parameter)
            assert not wrong, "\n".join([name, *wrong])


@pytest.mark.parametrize("method", METHODS)
def test_methods_with_usable_arguments_ask_the_server(method, usable):
    """Else the other test would see the refusal of something else."""
    if method in ("apply_removal", "restore"):
        pytest.skip("reads a file before it asks a server")
    call = getattr(CLIENT, method)
    with pytest.raises(RequestSentError):
        list(call(**_needed(call, usable)))


@dataclass
class Inner:
    """
    Args:
        depth:
            How deep.
    """

    depth: int = 3


@dataclass
class Outer:
    """
    Args:
        inner:
            ...
        width:
            How wide.
    """

    inner: Inner = field(default_factory=Inner)
    width: int = option(1, Count())
    height: int = 2
    sizes: int = private(7)


def test_a_field_of_a_class_of_options_is_public_because_it_is_a_field(monkeypatch):
    """Without an entry below Args it is a parameter all the same, and `make client` fails; a private one is none."""
    found = parameters(Outer)
    assert [(each.name, each.annotation, each.text) for each in found.values()] == [
        ("depth", "int", "How deep."),
        ("width", "int", "How wide."),
        ("height", "int", ""),
    ]
    monkeypatch.syspath_prepend(TOOLS)
    entries_in = importlib.import_module("generate_clients").entries_in
    with pytest.raises(LookupError, match=r"Outer: no entry below Args for \['height'\]"):
        entries_in(Outer)
    assert entries_in(Inner) == {"depth": "How deep."}
