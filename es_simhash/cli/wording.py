"""What the library says of its calls, as a shell has them: ``setup(index)`` is ``es-simhash setup INDEX``."""

from __future__ import annotations

import inspect
import re

from es_simhash.cli.app import COMMANDS

NAMED_OTHERWISE = {
    "build_component_template": "export mapping --component-template",
    "build_index_template": "export mapping --index-template PATTERN",
    "check_sample": "check --sample",
    "create_index": "create",
    "find_near_dups": "find",
    "find_passages": "passages",
    "plan_removal": "plan",
    "put_mapping": "create --existing",
}
"""Commands that have another name than the call."""

_VALUE = r"True|False|None|[A-Z]+\b|\d+(?:\.\d+)?|'[^']*'|\"[^\"]*\""
_CALL = re.compile(rf"\b([a-z_]+)\(((?:[a-z_]+(?:=(?:{_VALUE}))?(?:, )?)*)\)")
_GIVEN = re.compile(rf"(?<!--set )\b([a-z_]+)=({_VALUE})")
_FILES = re.compile(r'\bfiles=\{"(\w+)": PATH\}')


def in_shell(message: str) -> str:
    """
    Return *message* with commands and options in place of calls and arguments of the library.

    Examples:
        >>> in_shell("change it with reconcile(index, regroup=True)")
        'change it with es-simhash reconcile INDEX --regroup'
        >>> in_shell("compare none (verify=False)")
        'compare none (--no-verify)'
        >>> in_shell("allow it with max_share=0.334")
        'allow it with --max-share 0.334'
    """
    message = _FILES.sub(r"ES_SIMHASH_FILES=\1=PATH", _CALL.sub(_command, message))
    return _GIVEN.sub(lambda found: _option(*found.groups()) if _is_argument(found[1]) else found[0], message)


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


def _is_argument(name: str) -> bool:
    """Return whether a method of the library takes an argument of this *name*."""
    from es_simhash import SimHashClient  # noqa: PLC0415 -- only for a message that may have one

    methods = [getattr(SimHashClient, name) for name in dir(SimHashClient) if not name.startswith("_")]
    return any(name in inspect.signature(method).parameters for method in [SimHashClient, *methods] if callable(method))
