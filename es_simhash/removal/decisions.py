"""
Decisions about a plan of removal: which of its documents stay, who decided, and why. The review page makes the file.

    {"format": "es-simhash-decisions", "version": 1, "plan_sha256", "by", "reason",
     "keep": [{"index", "id", "routing"}]}

A file that is not exactly this is refused whole: whoever edited it may have meant to keep more. "by" is required,
"reason" may be empty, and "keep" too: the plan is then approved as it is.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import Any

from es_simhash.arguments import FilePath, check_input, check_name
from es_simhash.errors import InvalidInputError, shorten
from es_simhash.removal.files import LONGEST_LINE, refuse_pipe
from es_simhash.removal.may_delete import Share
from es_simhash.removal.plan_file import Plan, read_plan
from es_simhash.removal.records import take
from es_simhash.transport.protocol import Key

FORMAT = "es-simhash-decisions"
VERSION = 1
DECIDE_AGAIN = "make the file again on the review page of its plan"
LONGEST_NAME = 200
LONGEST_REASON = 1_000
"""Characters; both are in each line of the archive."""

# Letters that show as nothing.
_BLANK = "\u115f\u1160\u3164\uffa0"
_NAMES = ("format", "version", "plan_sha256", "by", "reason", "keep")
_KEYS = ("index", "id", "routing")


def read_approved(path: FilePath, *, decisions: FilePath | None, sha256: str | None) -> Plan:
    """Return the plan in *path*, with *decisions*; raise InvalidInputError if it is not the one with this *sha256*."""
    if sha256 is not None:
        check_name("sha256", sha256)
    if decisions is not None:
        check_input("decisions", decisions)
    plan = read_plan(check_input("path", path))
    if sha256 is not None and sha256.lower() != plan.sha256:
        raise InvalidInputError(
            f"{plan.path} is not the plan that was approved: its sha256 is {plan.sha256}, and not {shorten(sha256)}: "
            "give the plan that was approved, or have this one approved"
        )
    return plan if decisions is None else decide(plan, decisions)


def decisions_name(plan: FilePath) -> Path:
    """Return the name, beside *plan*, of the decisions that its page makes."""
    return Path(plan).with_name(f"{Path(plan).stem}.decisions.json")


def apply_command(plan: FilePath) -> list[str]:
    """Return the words of the command that applies *plan* with the decisions that its page makes."""
    archive = "removed.jsonl.gz" if not Path("removed.jsonl.gz").exists() else f"{Path(plan).stem}-removed.jsonl.gz"
    return ["es-simhash", "apply", str(plan), "--archive", archive, "--decisions", str(decisions_name(plan)), "--yes"]


def find_decisions(plan: Plan, given: Collection[FilePath] = ()) -> Path | None:
    """
    Return the newest file of decisions about *plan* beside it, also as a browser names a second one, or ``None``.
    With the files *given*, only one that is not older than these and keeps what they do not.
    """
    kept, since = read_kept(given), max((_changed_at(Path(path)) for path in given), default=0)
    name = decisions_name(plan.path)
    beside = {path: _changed_at(path) for path in name.parent.glob(f"{escape(name.stem)}*{name.suffix}")}
    for path in sorted((path for path in beside if beside[path] >= since), key=beside.__getitem__, reverse=True):
        if path.is_dir():
            continue
        try:
            sha256, _, keys = _read(path)
        except (InvalidInputError, OSError):  # nobody knows what it was meant to keep
            return path
        if sha256 == plan.sha256 and (not given or keys - kept):
            return path
    return None


def _changed_at(path: Path) -> int:
    # A link to a file that is not there: when the link itself was made.
    return path.stat(follow_symlinks=path.exists()).st_mtime_ns


def read_kept(paths: Iterable[FilePath]) -> frozenset[Key]:
    """Return the documents that the files of decisions *paths* keep, whatever their plans are."""
    return frozenset().union(*(_read(Path(path))[2] for path in paths))


def decide(plan: Plan, path: FilePath) -> Plan:
    """Return *plan* with the decisions in the file *path*; raise InvalidInputError if they do not fit it exactly."""
    path = Path(path)
    sha256, approved, keys = _read(path)
    if sha256 != plan.sha256:
        again = shlex.join(["es-simhash", "plan", "INDEX", "--decisions", str(path)])
        raise InvalidInputError(
            f"{path} decides about another plan, and not about {plan.path}: give the plan that was reviewed, plan "
            f"again without what it keeps ({again}), or decide on the review page of this one"
        )
    return _leave_out(plan, path, keys, approved)


def _read(path: Path) -> tuple[str, tuple[str, str], frozenset[Key]]:
    """Return what :func:`_parse` does of a file; raise InvalidInputError if it cannot be used."""
    refuse_pipe(path)
    try:
        if path.stat().st_size > LONGEST_LINE:
            raise ValueError(f"it is longer than {LONGEST_LINE:,} bytes")
        return _parse(json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_once))
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{path} is not a file of decisions that can be used ({error}): {DECIDE_AGAIN}"
        ) from error


def _parse(plain: Any) -> tuple[str, tuple[str, str], frozenset[Key]]:
    """Return the digest of the plan, who decided and why, and what is kept; raise ValueError if that is not clear."""
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise ValueError(f"'format' is not {FORMAT!r}")
    if (version := take(plain, "version", int)) != VERSION:
        raise ValueError(f"it has version {shorten(version)}, and this program reads version {VERSION}")
    _refuse_other(plain, _NAMES)
    texts = []
    for name, longest in (("by", LONGEST_NAME), ("reason", LONGEST_REASON)):
        texts.append(take(plain, name, str).strip())
        if len(texts[-1]) > longest:
            raise ValueError(f"{name!r} has more than {longest:,} characters")
    by, reason = texts
    if not any(each.isalnum() and each not in _BLANK for each in by):
        raise ValueError("'by' is empty, and must say who decides")
    keys = Counter(map(_parse_key, take(plain, "keep", list)))
    if twice := next((key for key, number in keys.items() if number > 1), None):
        raise ValueError(f"it keeps {shown(twice)} twice")
    return take(plain, "plan_sha256", str), (by, reason), frozenset(keys)


def _once(pairs: Collection[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return plain


def _refuse_other(plain: Mapping[str, Any], names: Collection[str]) -> None:
    if other := sorted(plain.keys() - set(names)):
        raise ValueError(f"{shorten(other[0])} is not known")


def _parse_key(plain: Any) -> Key:
    if not isinstance(plain, dict):
        raise ValueError("an entry of 'keep' is no object")  # noqa: TRY004 -- the text is wrong, not its type
    _refuse_other(plain, _KEYS)
    if "routing" not in plain:
        raise ValueError("'routing' is missing in an entry of 'keep'")
    return Key(take(plain, "index", str), take(plain, "id", str), take(plain, "routing", str, type(None)))


def _leave_out(plan: Plan, path: Path, keys: frozenset[Key], approved: tuple[str, str]) -> Plan:
    """Return *plan* without *keys*, also in what its guard rails count; the plan is read once."""
    found: set[Key] = set()
    values = Counter[str]()
    for each in plan.removals() if keys else ():
        if each.document.key in keys:
            found.add(each.document.key)
            values.update(each.protected or ())
    if unknown := keys - found:
        raise InvalidInputError(
            f"{path} keeps {shown(min(unknown, key=str))}, which {plan.path} does not name: {DECIDE_AGAIN}"
        )
    guards = plan.header.guards
    shares = {
        value: Share(left, share.documents)
        for value, share in guards.values.items()
        if (left := share.removals - values[value]) > 0
    }
    header = replace(plan.header, guards=replace(guards, values=shares))
    return replace(plan, header=header, kept=keys, approved=approved)


def shown(key: Key) -> str:
    """Return *key* for people."""
    return f"{shorten(key.index)}/{shorten(key.id)}"
