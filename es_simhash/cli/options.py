"""
The options of the commands, from what the library's own methods and classes of options take: name, type, default,
check and text. What a shell gives in another way than Python is in one table.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, Literal, TypeVar, cast

from cyclopts import Group, Parameter

from es_simhash import DEFAULT_PREFIX, DEFAULT_SCHEME, PRESETS, InvalidInputError, Scheme, Verification, get_scheme
from es_simhash.arguments import Parameter as Taken, parameters
from es_simhash.cli.failures import WrongUseError
from es_simhash.errors import shorten
from es_simhash.hashing.scheme import FILES, STEPS
from es_simhash.lookup.query import check_filter
from es_simhash.texts.measures import NUMBERS, WORD_SHINGLES
from es_simhash.transport.raw_json import why_unreadable

_Command = TypeVar("_Command", bound=Callable[..., Any])


@Parameter(name="*", group=Group("Server", sort_key=2))
@dataclass(frozen=True, kw_only=True)
class To:
    """
    Where a command works. All else about the connection, such as the login, comes from the environment.

    Args:
        prefix:
            Name of the object field that holds the fingerprint fields. Default: simhash.
        url:
            Address of the server. Default: http://localhost:9200.
    """

    prefix: str = DEFAULT_PREFIX
    url: Annotated[str, Parameter(env_var="ES_SIMHASH_URL")] = "http://localhost:9200"

    def command(self, *words: str) -> str:
        """Return a command of es-simhash for a shell, with the prefix where it is not the default."""
        more = [] if self.prefix == DEFAULT_PREFIX else ["--prefix", self.prefix]
        return shlex.join(["es-simhash", *words, *more])


def parse_settings(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings of a scheme that *words* such as ``size=5`` give."""
    settings = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not key or not equals:
            raise WrongUseError(f"--set {word!r} is not KEY=VALUE, as in --set top=50")
        try:
            settings[key] = json.loads(text)
        except (ValueError, RecursionError):
            settings[key] = text
    return settings


def files_of_environment() -> dict[str, Any]:
    """Return the files that ``ES_SIMHASH_FILES`` names for a scheme, as in ``dictionary=words.txt,idf=idf.txt``."""
    words = filter(None, os.environ.get("ES_SIMHASH_FILES", "").split(","))
    given = [word.partition("=")[::2] for word in words]
    if unknown := [name for name, path in given if name not in FILES or not path]:
        names = ", ".join(map(shorten, unknown))
        raise InvalidInputError(f"ES_SIMHASH_FILES has {names}: give KEY=PATH, where KEY is {', '.join(FILES)}")
    return dict(given)


@Parameter(name="*", group=Group("Scheme", sort_key=1))
@dataclass(frozen=True, kw_only=True)
class Described:
    """
    A scheme, described.

    Args:
        scheme:
            Scheme of the fingerprints: shingles or keywords, or with a version, such as shingles-3.
        set:
            Set a parameter of the scheme, as in --set size=5; keywords also takes files as dictionary, idf and
            stop_words. Repeatable.
        preprocess:
            Change texts first: html to text; leave out numbers, times and ids; traditional to simplified Chinese
            (t2s). Repeatable; the order counts.
    """

    scheme: str | None = None
    set: tuple[str, ...] = ()
    preprocess: Annotated[tuple[str, ...], Parameter(choices=STEPS)] = ()

    def build(self) -> Scheme | None:
        """Return the scheme, ``None`` if none is described."""
        settings, name = parse_settings(self.set), self.scheme
        if name is None and not settings.keys().isdisjoint(FILES):
            name = "keywords"
        if self.preprocess:
            settings["preprocess"] = self.preprocess
        if name is None and not settings:
            return None
        try:
            return get_scheme(name or DEFAULT_SCHEME, **settings)
        except TypeError as error:
            raise InvalidInputError(str(error)) from error

    @property
    def files(self) -> dict[str, Any]:
        """The files of the scheme: that of a mapping has their digests."""
        return {key: given for key, given in parse_settings(self.set).items() if key in FILES}


def read_json(text: str) -> Any:
    """Return the object or list that *text* is as JSON."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{text[:80]!r} is not JSON ({why_unreadable(error)}); quote it for the shell: '{{\"term\": ...}}'"
        ) from error
    if not isinstance(parsed, (dict, list)) or not parsed:
        raise ValueError(f"{text[:80]!r} is neither an object nor a list of objects")
    return parsed


def _read_query(text: str) -> Any:
    parsed = read_json(text)
    check_filter(parsed)
    return parsed


def _read_fields(text: str) -> bool | list[str]:
    """Return the fields that ``--source`` names: all of them for ``*``."""
    if text.strip() == "*":
        return True
    if not (names := split_names([text])):
        raise ValueError("it has no name of a field: pass names separated by commas, or *")
    return names


def _read_within(text: str) -> tuple[str, str] | Literal[False]:
    name, colon, span = text.rpartition(":")
    if text and not colon:
        raise ValueError(f"{text!r} is not FIELD:SPAN, as in published:7d")
    return (name, span) if text else False


def split_names(values: Any) -> list[str]:
    """Return the names in *values*, each of which may be several names separated by commas."""
    return [name for value in values for part in value.split(",") if (name := part.strip())]


def _split_tokens(_: Any, tokens: Any) -> tuple[str, ...]:
    return tuple(split_names([token.value for token in tokens]))


def reads(read: Callable[[str], Any], help: str, metavar: str) -> Parameter:
    """Return an option whose words *read* reads, or refuses."""

    def convert(_: Any, tokens: Any) -> Any:
        return read(tokens[0].value)

    return Parameter(converter=convert, n_tokens=1, accepts_keys=False, help=help, metavar=metavar)


_BITS = "Largest distance of a near-duplicate in bits, inclusive, 0 to 64. Default: that of the index's rule, else 12."
_CANONICAL = (
    "Which document stands for its group: id (the smallest), longest, a date or number FIELD (the earliest), -FIELD "
    "(the latest), or FIELD:VALUE>VALUE>* (preferred values of a keyword). Repeatable; the first decides, then the "
    "next. Default: what the index records, else simhash.at, the document that was grouped first."
)
_VERIFY = (
    "Near-duplicates are only documents whose texts are so similar: by default, that share this part of their 7-letter "
    "shingles. With --no-verify texts are not compared."
)
_PRESET = "; ".join(
    f"{preset.name}: {preset.max_distance} bits, {preset.similarity:g}"
    + ("" if preset.text_measure() == WORD_SHINGLES else f" ({preset.text_measure()})")
    for preset in PRESETS.values()
)
_NUMBERS = (
    "same: texts with other numbers in the same places are no near-duplicates, such as the figures of another week. "
    "most: not where more of them, from two on, are others than the same. Default: as the preset or the index says, "
    "else any."
)
_TEXT_FIELD = "Field that holds the text. Repeatable; the order counts. Default: what the index records."
_FILTER = 'Only documents that match this query, as in \'{"term": {"lang": "en"}}\'.'
MaxDistance = Annotated[int | None, Parameter(alias="-d", metavar="BITS", help=_BITS)]
_TEXT_FIELDS = Parameter(alias="-t", metavar="FIELD", help=_TEXT_FIELD)
TextFields = Annotated[tuple[str, ...], _TEXT_FIELDS]
Yes = Annotated[bool, Parameter(alias="-y", help="Do it. Without --yes the command says what it would do.")]
YesFor = Annotated[bool, Parameter(alias="-y")]
DryRun = Annotated[bool, Parameter(help="Say what would be done, and change nothing.")]

# What a shell gives in another way than Python.
_OTHERWISE: dict[str, Any] = {
    "filter": Annotated[Any, reads(_read_query, _FILTER, "JSON")],
    "text_field": Annotated[tuple[str, ...] | None, _TEXT_FIELDS],
    "max_distance": MaxDistance,
    "preset": Annotated[
        str | None,
        Parameter(choices=tuple(PRESETS), help=f"Use the distance and similarity of this preset. {_PRESET}."),
    ],
    "verify": Annotated[float | None, Parameter(negative="--no-verify", metavar="SHARE", help=_VERIFY)],
    "numbers": Annotated[str | None, Parameter(choices=NUMBERS, help=_NUMBERS)],
    "canonical": Annotated[list[str] | None, Parameter(metavar="ORDER", allow_leading_hyphen=True, help=_CANONICAL)],
    "per": Annotated[
        Any,
        reads(
            lambda text: text or False,
            "Near-duplicates have the same value of this keyword field. An empty FIELD means no such condition.",
            "FIELD",
        ),
    ],
    "within": Annotated[
        Any,
        reads(
            _read_within,
            "The dates of near-duplicates differ by at most SPAN, as in published:7d. An empty value means no such "
            "condition.",
            "FIELD:SPAN",
        ),
    ],
    "source": Annotated[
        Any, reads(_read_fields, "Show these fields of the documents, separated by commas; * for all.", "FIELDS")
    ],
    "routing": Annotated[
        str | None, Parameter(help="With --id: the routing value of the document. Else search only there.")
    ],
    "workers": Annotated[int | None, Parameter(metavar="N", help="Compute fingerprints in N additional processes.")],
    "after": Annotated[
        tuple[str, ...] | None,
        Parameter(metavar="REMOVAL", help="Leave out what people kept in this earlier removal. Repeatable."),
    ],
    "also": Annotated[
        tuple[str, ...] | None,
        Parameter(
            metavar="CLASSES",
            converter=_split_tokens,
            help="Remove these classes as well: few (a few words of its own, and no number), numbers (only numbers "
            "differ), title (it has a title of its own), rewritten (more of its own). Separated by "
            "commas, or repeated.",
        ),
    ],
    "show": Annotated[
        tuple[str, ...] | None,
        Parameter(
            metavar="FIELDS",
            converter=_split_tokens,
            help="Fields whose values people see first. Default: title, URL, source and date, by their usual names. A "
            "title that is found is shown in any case. Separated by commas, or repeated.",
        ),
    ],
}


def plain(text: str) -> str:
    """Return a text of a docstring without its marks, on one line."""
    return " ".join(re.sub(r":\w+:`([^`]+)`|``([^`]+)``|\*(\w+)\*", r"\1\2\3", text).split())


def _type_of(taken: Taken) -> Any:
    """Return the type of an option for what a method takes."""
    if (known := _OTHERWISE.get(taken.name)) is not None:
        return known
    parts = taken.annotation.split(" | ")
    kind = next((kind for kind in (bool, int, float) if kind.__name__ in parts), str)
    how: dict[str, Any] = {"help": plain(taken.text), "show_default": bool(taken.default)}
    if choices := re.findall(r"'(\w+)'", taken.annotation):
        how["choices"] = choices
    is_list = "Sequence[str]" in parts
    return Annotated[(tuple[str, ...] if is_list else kind) | None, Parameter(**how)]


RULE = "preset verify numbers max_distance canonical per within"
"""The options of the commands that group documents."""


def _parameter(taken: Taken) -> inspect.Parameter:
    # The type of a default would decide what a shell gives.
    default = None if taken.name in _OTHERWISE else taken.default
    return inspect.Parameter(taken.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_type_of(taken))


def takes(method: Any, names: str) -> Callable[[_Command], _Command]:
    """Add options to a command: *names* of what a *method* takes; the command gets those that are given."""
    known = {"numbers": Taken("numbers", "str", None, ""), **parameters(method)}
    added = [_parameter(known[name]) for name in names.split()]

    def add(command: _Command) -> _Command:
        @wraps(command)
        def with_options(*args: Any, **how: Any) -> Any:
            return command(*args, **settle(how))

        signature = inspect.signature(command)
        own = [taken for taken in signature.parameters.values() if taken.kind is not taken.VAR_KEYWORD]
        vars(with_options)["__signature__"] = signature.replace(parameters=[*own, *added])
        return cast("_Command", with_options)

    return add


def settle(how: Mapping[str, Any]) -> dict[str, Any]:
    """Return *how* with ``--verify`` and ``--numbers`` as one value."""
    settled = dict(how)
    if "verify" in settled and settled["verify"] is None:
        settled["verify"] = False
    if numbers := settled.pop("numbers", None):
        if settled.get("verify") is False:
            raise WrongUseError("pass --no-verify, or --verify and --numbers, not both")
        settled["verify"] = Verification(settled.get("verify"), numbers=numbers)
    return settled
