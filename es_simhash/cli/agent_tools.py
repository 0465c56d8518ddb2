"""
The tools of ``es-simhash mcp``: what each takes, and its answer, which is bounded and marked as data.

Names, types, ranges and texts of arguments come from the methods of the client and their options. No tool writes, and
its client refuses every request that could write. How calls arrive is not known here.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from es_simhash import PRESETS, AsyncSimHashClient, InvalidInputError, NearDups
from es_simhash.arguments import LARGEST_COUNT, Count, Parameter, check_name, check_path, parameters
from es_simhash.cli.agent_answers import Answer, Shown
from es_simhash.cli.failures import UnfingerprintedText
from es_simhash.cli.options import Target
from es_simhash.connection import Login, open_async_client
from es_simhash.errors import count, shorten
from es_simhash.folding.request import DistinctOptions
from es_simhash.groups.pairs_and_groups import GroupOptions
from es_simhash.lookup.lookup_options import LookupOptions
from es_simhash.lookup.query import check_filter
from es_simhash.passages.lookup import PassageOptions
from es_simhash.quality import StatsOptions
from es_simhash.removal.review import Review, removal_lines
from es_simhash.tables.notebook import cut
from es_simhash.texts.measures import check_bound

_AT_ONCE = 4  # calls that are carried out; others wait
_COUNTED = 500  # near-duplicates whose texts are compared in one call, unless more are to be shown
_FEW = 3  # so few near-duplicates, and what was rejected is shown too

# Queries that read nothing but the documents they are asked of; a lookup of terms reads another index.
QUERIES = ("bool", "exists", "ids", "match", "match_all", "match_phrase", "prefix", "range", "term", "terms")
_CLAUSES = ("filter", "must", "must_not", "should")


def check_query(given: Any) -> None:
    """Refuse a filter that could read what the index does not hold, run a script, or take the server long."""
    for clause in check_filter(given):
        [(kind, body)] = clause.items()
        if kind not in QUERIES or not isinstance(body, Mapping):
            raise InvalidInputError(f"filter has {shorten(kind)}: give {', '.join(QUERIES)}")
        if kind == "terms" and any(isinstance(terms, Mapping) for terms in body.values()):
            raise InvalidInputError("filter has terms from another document: give a list of them")
        if kind == "bool":
            for name, inner in body.items():
                if name in _CLAUSES:
                    check_query(inner)
                elif name not in ("boost", "minimum_should_match"):
                    raise InvalidInputError(f"filter has {shorten(name)} in bool: give {', '.join(_CLAUSES)}")


def check_allowed(index: Any, patterns: Sequence[str]) -> None:
    """
    Refuse *index* unless every name in it fits one of the *patterns*, if there are any.
    A star in a name fits only a star, so whatever the name means to a server fits too. Exclusions, date math, other
    clusters and escapes mean something else than they say, and are refused.
    """
    for name in check_name("index", index).split(",") if patterns else ():
        fits = any(re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) for pattern in patterns)
        if not fits or name[:1] in "-+_" or set(name) & set('%<>:/\\|?#"'):
            raise InvalidInputError(f"index {shorten(name)} is not allowed here: give names like {', '.join(patterns)}")


@dataclass(frozen=True)
class Tool:
    """A tool, which *takes* arguments of *methods* of the client, and of :class:`Shown`; some it *needs*."""

    run: Callable[[Any, dict[str, Any], Shown], Awaitable[Answer]]
    methods: Sequence[str]
    takes: Sequence[str]
    options: type[Any] | None
    needs: Sequence[str]

    @property
    def description(self) -> str:
        own = self.run.__doc__ or getattr(AsyncSimHashClient, self.methods[0]).__doc__
        return _plain((own or "").strip().split("\n\n")[0])

    def schema(self, patterns: Sequence[str]) -> dict[str, Any]:
        """Return the JSON schema of the arguments; *patterns*: the indices that are allowed."""
        methods = [getattr(AsyncSimHashClient, name) for name in reversed(self.methods)]
        sources = [*methods, Shown, *([] if self.options is None else [self.options])]
        known: dict[str, Parameter] = {}
        for name, taken in (item for source in sources for item in parameters(source).items()):
            known[name] = taken if taken.text or name not in known else replace(taken, text=known[name].text)
        properties = {}
        for name in self.takes:
            taken = known.get(name) or Parameter(name, "str", None, "")
            text = _TEXTS.get(f"{self.run.__name__}.{name}") or _TEXTS.get(name) or _plain(taken.text)
            properties[name] = _type(taken) | {"description": text}
            if taken.default and isinstance(taken.default, (int, float, str)):
                properties[name]["default"] = taken.default
        if "index" in properties:
            allowed = f" Allowed: {', '.join(patterns)}." if patterns else ""
            properties["index"]["description"] += f" Several are separated by commas.{allowed}"
        closed = {"required": list(self.needs), "additionalProperties": False}
        return {"type": "object", "properties": properties, **closed}


def _plain(text: str) -> str:
    return " ".join(re.sub(r":\w+:`([^`]+)`|``([^`]+)``|\*(\w+)\*", r"\1\2\3", text).split())


_SHOWN_FIELDS = "The fields shown of each: false, true or some; by default those of the text."
_TEXTS = {
    "find.source": _SHOWN_FIELDS,
    "find_of.source": _SHOWN_FIELDS,
    "search_distinct.text": "Words to search for in the text of the documents; the best match comes first.",
    "id": "Id of a document of the index.",
    "after": "What the answer before had as after, to go on with the same search.",
    "plan": "Name of a plan in the folder; without it the names of all plans are returned.",
}
_TYPES: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "Index": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "Sequence[str]": {"type": "array", "items": {"type": "string"}},
    "Filter": {"type": "object"},
    "Preset": {"type": "string", "enum": list(PRESETS)},
}


def _type(taken: Parameter) -> dict[str, Any]:
    check, parts = taken.check, taken.annotation.split(" | ")
    kinds = [_TYPES[part] for part in parts if part in _TYPES and not (part == "str" and "Preset" in parts)]
    kinds += [{"enum": re.findall(r"['\"](\w+)", part)} for part in parts if part.startswith("Literal")]
    if isinstance(check, Count) or check is check_bound:
        least, most = (check.smallest, check.largest) if isinstance(check, Count) else (0, 1)
        kinds = [kind | {"minimum": least} | ({"maximum": most} if most < LARGEST_COUNT else {}) for kind in kinds]
    return dict(kinds[0]) if len(kinds) == 1 else {"anyOf": kinds}


TOOLS: dict[str, Tool] = {}


def _tool(methods: str, takes: str, options: type[Any] | None = None, needs: str = "index") -> Callable[[Any], Any]:
    def add(run: Any) -> Any:
        TOOLS[run.__name__] = Tool(run, methods.split(), takes.split(), options, needs.split())
        return run

    return add


@dataclass(eq=False)
class Reader:
    """Carries calls out, on one connection, which the first of them makes; the address of *target* has no login."""

    target: Target
    login: Login
    patterns: Sequence[str] = ()
    plans: Path | None = None
    _client: Any = None
    _simhash: AsyncSimHashClient | None = None
    _connecting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    _running: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def tools(self) -> dict[str, Tool]:
        return {name: tool for name, tool in TOOLS.items() if self.plans is not None or name != "review"}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """
        Return the answer of the tool *name*. A call that is cancelled stops, and closes what it has opened.

        Its work is a task of its own: one that is cancelled again and again, as by anyio, could close nothing.
        """
        task = asyncio.ensure_future(self._call(name, arguments))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    async def _call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if (tool := self.tools.get(name)) is None:
            raise InvalidInputError(f"there is no tool {shorten(name)}: call {', '.join(self.tools)}")
        asked = {key: value for key, value in arguments.items() if value is not None}
        for key in asked:
            if key not in tool.takes:
                raise InvalidInputError(f"{name} has no {shorten(key)}: give {', '.join(tool.takes)}")
        for key in tool.needs:
            if key not in asked:
                raise InvalidInputError(f"{key} is missing: {name} needs {' and '.join(tool.needs)}")
        check_query(asked.get("filter"))
        shown = Shown(**{key: asked.pop(key) for key in _SHOWN.split() if key in asked})
        async with self._gate:
            answer = await tool.run(await self._connect(asked["index"]) if "index" in asked else self, asked, shown)
        return answer.to_dict(shown)

    async def _connect(self, index: Any) -> AsyncSimHashClient:
        check_allowed(index, self.patterns)
        async with self._connecting:
            if self._simhash is None:
                server, headers = self.target.server, self.login.headers
                self._client = await asyncio.to_thread(open_async_client, server, headers, check_name("index", index))
                own: Any = {"files": self.target.files, "prefix": self.target.prefix, "read_only": True}
                self._simhash = AsyncSimHashClient(self._client, **own)
        return self._simhash

    async def close(self) -> None:
        """End what is running, and close the connection."""
        for task in self._running:
            if not task.cancelling():  # else it is closing what it has opened
                task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=5)
        if self._client is not None:
            await self._client.close()

    def plan(self, name: Any) -> Path:
        """Return the path of the plan *name*, which may not lead out of the folder."""
        folder, given = (self.plans or Path()).resolve(), Path(check_path("plan", name))
        path = Path(os.path.realpath(folder / given))
        # Of a path that is too long, or links that lead to each other, the methods of Path raise.
        is_inside = not given.is_absolute() and ".." not in given.parts and path.is_relative_to(folder)
        if not is_inside or not os.path.isfile(path):  # noqa: PTH113 -- as above
            raise InvalidInputError(f"plan {shorten(name)} is not in the folder: leave plan out to see which are")
        return path


_SHOWN = "limit offset characters"
_LOOKUP = f"max_distance preset filter routing source {_SHOWN}"


@_tool("find_near_dups", f"index text {_LOOKUP}", LookupOptions, "index text")
async def find(simhash: AsyncSimHashClient, asked: dict[str, Any], shown: Shown) -> Answer:
    return await _find(simhash, simhash.find_near_dups, asked, shown)


@_tool("find_near_dups_of find_near_dups", f"index id {_LOOKUP}", LookupOptions, "index id")
async def find_of(simhash: AsyncSimHashClient, asked: dict[str, Any], shown: Shown) -> Answer:
    return await _find(simhash, simhash.find_near_dups_of, asked, shown)


async def _text_fields(simhash: AsyncSimHashClient, index: str) -> list[str]:
    """Return the fields of the texts, as the index records them."""
    recorded = (await simhash.get_settings(index)).values()
    return list(dict.fromkeys(name for settings in recorded for name in settings.text_fields))


@_tool("find_near_dups", "index text filter routing characters", LookupOptions, "index text")
async def is_known(simhash: AsyncSimHashClient, asked: dict[str, Any], _: Shown) -> Answer:
    """Say in one line whether the index has this text, or a near-duplicate of it, by the rule that it records."""
    found = await simhash.find_near_dups(**asked, size=1)
    if found.unverified:  # another one, not nearer, may have been compared
        found = await simhash.find_near_dups(**asked, size=_COUNTED)
    if not found and found.plan is None and found.scheme is not None:
        return Answer({"answer": f"unsure: {UnfingerprintedText.of(asked['text'], found.scheme)}"})
    if not found:
        nearest = f"; rejected: {found.rejected[0]}" if found.rejected else ""
        return Answer({"answer": f"no: nothing is near it ({found.rule}){nearest}"})
    near = next((near_dup for near_dup in found if near_dup.unverified is None), found[0])
    if near.unverified is not None:
        return Answer({"answer": f"unsure: {near.id} in {near.index} was not compared: {near.unverified}"})
    alike = "" if near.similarity is None else f", similarity {cut(near.similarity):g}"
    bits = count(near.distance, "bit")
    return Answer({"answer": f"yes: {near.id} in {near.index} has it ({bits}{alike}; by the rule: {found.rule})"})


async def _find(
    simhash: AsyncSimHashClient, method: Callable[..., Awaitable[NearDups]], asked: dict[str, Any], shown: Shown
) -> Answer:
    """Find them, to count them; then the fields of those that are shown."""
    source = asked.pop("source", None)
    counted = max(_COUNTED, shown.offset + shown.limit + 1)
    found = await method(**asked, size=counted)
    total = len(found)
    head: dict[str, Any] = {"rule": str(found.rule), "max_distance": found.max_distance}
    head |= {"scheme": str(found.scheme), "total": total}
    if total == counted:
        head["there_may_be_more"] = f"the nearest {counted:,} were counted: give a smaller max_distance, or a filter"
    if found.unverified:
        head["unverified"] = found.unverified
    if total < _FEW and found.rejected:
        head["rejected"] = [rejection.to_dict() for rejection in found.rejected]
    if found.plan is None and found.scheme is not None and "text" in asked:
        head["no_fingerprint"] = str(UnfingerprintedText.of(asked["text"], found.scheme))
    if source is None and total > shown.offset:
        source = await _text_fields(simhash, asked["index"])
    if source and total > shown.offset:
        found = await method(**asked, source=source, size=shown.offset + shown.limit)
    # Of more that are asked for, the first are the same.
    return Answer.page("near_dups", sorted(found, key=lambda near_dup: near_dup.order), total, shown, head)


@_tool("explain", "index first second texts text_field max_changes characters")
async def explain(simhash: AsyncSimHashClient, asked: dict[str, Any], _: Shown) -> Answer:
    return Answer((await simhash.explain(**asked)).to_dict())


@_tool(
    "search_distinct find_near_dups",
    "index text filter source after total limit characters",
    DistinctOptions,
    "index text",
)
async def search_distinct(simhash: AsyncSimHashClient, asked: dict[str, Any], shown: Shown) -> Answer:
    """Search for words, and return of all hits that are near-duplicates the best one."""
    if not (text_fields := await _text_fields(simhash, asked["index"])):
        raise InvalidInputError(f"index {shorten(asked['index'])} does not record its text field: nothing to search in")
    words = {"multi_match": {"query": check_name("text", asked.pop("text")), "fields": text_fields}}
    query = {"bool": {"must": [words], "filter": check_filter(asked.pop("filter", None))}}
    body = {"query": query, "_source": asked.pop("source", text_fields)}
    page = await simhash.search_distinct(body=body, size=shown.limit, **asked)
    hits = [hit.to_dict() for hit in page]
    return Answer({"total": page.total}, "hits", hits, whole={"after": page.after})


@_tool("find_passages find_passages_of", f"index text id min_contained min_run filter routing {_SHOWN}", PassageOptions)
async def passages(simhash: AsyncSimHashClient, asked: dict[str, Any], shown: Shown) -> Answer:
    if ("text" in asked) == ("id" in asked):
        raise InvalidInputError("both text and id are given, or neither: give one of them")
    found = await (simhash.find_passages if "text" in asked else simhash.find_passages_of)(**asked)
    head = {"min_run": found.min_run, "min_contained": found.min_contained, "total": len(found)}
    return Answer.page("overlaps", found, len(found), shown, head | ({"stale": found.stale} if found.stale else {}))


@_tool("groups", f"index min_size filter source {_SHOWN}", GroupOptions)
async def groups(simhash: AsyncSimHashClient, asked: dict[str, Any], shown: Shown) -> Answer:
    """Return groups of near-duplicates, as the documents say, the largest first."""
    told: list[int] = []
    found: list[Any] = []
    number = 0
    # How many there are is told when the first of them were read.
    stream = simhash.groups(**asked, sort="size", progress=lambda progress: told.append(progress.total or 0))
    async with aclosing(stream) as every:
        async for group in every:
            if told and number >= shown.offset + shown.limit:
                break
            if shown.offset <= number < shown.offset + shown.limit:
                found.append(group.to_dict())
            number += 1
    total = told[-1] if told else number
    return Answer({"total": total}, "groups", found, total)


@_tool("stats", "index time_field source_field text_field filter characters", StatsOptions)
async def stats(simhash: AsyncSimHashClient, asked: dict[str, Any], _: Shown) -> Answer:
    return Answer((await simhash.stats(**asked)).to_dict())


@_tool("check find_near_dups", f"index {_SHOWN}")
async def check(simhash: AsyncSimHashClient, asked: dict[str, Any], shown: Shown) -> Answer:
    # A fault as data says what its sentence says.
    found = [asdict(replace(checked, faults=())) for checked in await simhash.check(**asked)]
    return Answer.page("indices", found, len(found), shown, {"total": len(found)})


@_tool("", f"plan {_SHOWN}", needs="")
async def review(reader: Reader, asked: dict[str, Any], shown: Shown) -> Answer:
    """Show a plan of removal: how many documents would go, and what stays beside each. Nothing is removed."""
    if "plan" not in asked:
        names = sorted(path.name for path in (reader.plans or Path()).iterdir() if path.is_file())
        return Answer.page("plans", ({"plan": name} for name in names), len(names), shown, {})
    return await asyncio.to_thread(_review, reader.plan(asked["plan"]), shown)


def _review(path: Path, shown: Shown) -> Answer:
    with Review(path) as found:
        plain = ({"similarity": removal.similarity, "lines": [*removal_lines(removal)]} for removal in found.removals())
        return Answer.page("removals", plain, found.summary.total.removals, shown, found.to_dict())
