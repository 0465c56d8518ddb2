"""What the library says of its calls, as a shell has them: ``setup(index)`` is ``es-simhash setup INDEX``."""

from __future__ import annotations

import inspect
import re
from functools import cache

from es_simhash.cli.app import COMMANDS

NAMED_OTHERWISE = {
    "build_component_template": "export mapping --component-template",
    "build_index_template": "export mapping --index-template PATTERN",
    "check_sample": "check --sample",
    "create_index": "create",
    "find_near_dups": "find",
    "find_passages": "passages",
    "plan_removal": "plan",
    "put_mapping": "create --existing --yes",
}
"""Commands that have another name than the call."""

_VALUE = r"True|False|None|[A-Z]+\b|\d+(?:\.\d+)?|'[^']*'|\"[^\"]*\""
_CALL = re.compile(rf"\b([a-z_]+)\(((?:[a-z_]+(?:=(?:{_VALUE}))?(?:, )?)*)\)")
_FILES = re.compile(r'\bfiles=\{"(\w+)": PATH\}')
# An argument with its value, or one of several words alone; what stands in quotes or in a path is not ours.
_GIVEN = re.compile(rf"(?<![\w'\"./-])(?:([a-z_]+)=({_VALUE})|([a-z]+(?:_[a-z]+)+)(?![\w'\"(=./-]))")


def in_shell(message: str) -> str:
    """
    Return *message* with commands and options in place of calls and arguments of the library.

    Examples:
        >>> in_shell("change it with reconcile(index, regroup=True)")
        'change it with es-simhash reconcile INDEX --regroup'
        >>> in_shell("compare none (verify=False)")
        'compare none (--no-verify)'
        >>> in_shell("max_share 9.0 is out of range: allow it with max_share=0.334")
        '--max-share 9.0 is out of range: allow it with --max-share 0.334'
    """
    message = _FILES.sub(r"ES_SIMHASH_FILES=\1=PATH", _CALL.sub(_command, message))
    return _GIVEN.sub(_argument, message)


def _argument(found: re.Match[str]) -> str:
    name, value, alone = found.groups()
    if (name or alone) not in _arguments():
        return found[0]
    return _option(name, value) if name else f"--{alone.replace('_', '-')}"


def _command(call: re.Match[str]) -> str:
    known = {name for names in COMMANDS.values() for name in names}
    command = NAMED_OTHERWISE.get(call[1], call[1].replace("_", "-"))
    if command.partition(" ")[0] not in known:
        return call[0]
    given = [part.partition("=")[::2] for part in call[2].split(", ") if part]
    places = [name.upper() for name, value in given if not value]
    name, *options = command.split(" --")
    words = [*places, *(f"--{option}" for option in options), *(_option(*pair) for pair in given if pair[1])]
    return " ".join(["es-simhash", name, *words])


def _option(name: str, value: str) -> str:
    option = name.replace("_", "-")
    if value in ("True", "False"):
        return f"--{option}" if value == "True" else f"--no-{option}"
    return f"--{option} {value.lower() if value == 'None' else value.strip(chr(34) + chr(39))}"


@cache
def _arguments() -> frozenset[str]:
    """Return the names of all arguments of the client and its methods."""
    from es_simhash import SimHashClient  # noqa: PLC0415 -- only for a message that may have one

    methods = [
        SimHashClient,
        *(getattr(SimHashClient, name) for name in dir(SimHashClient) if not name.startswith("_")),
    ]
    return frozenset(name for method in methods if callable(method) for name in inspect.signature(method).parameters)
