"""
The command line ``es-simhash``: the commands are in ``commands/``, and what they share is beside it.

The library does the work: nothing is here that a user of the library would miss. The program is imported when it is
used, so that Ctrl-C meanwhile can be answered.
"""

import sys
from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from es_simhash.cli.application import app

__all__ = ["app", "main"]

__getattr__, _, _ = lazy_loader.attach(__name__, submod_attrs={"application": ["app"]})


def main() -> None:
    """Run ``es-simhash`` with the arguments of this process, then end the process."""
    try:
        from es_simhash.cli.application import app  # noqa: PLC0415 -- so that Ctrl-C meanwhile is answered

        app()
    except KeyboardInterrupt:
        sys.stderr.write('{"note": {"message": "stopped"}}\n' if "--json" in sys.argv else "stopped\n")
        sys.exit(130)
