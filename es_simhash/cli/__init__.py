"""
The command line ``es-simhash``: ``app.py`` has the table of commands, which are beside it, by theme.

The library does the work: nothing is here that a user of the library would miss. The program is imported when it is
used, so that Ctrl-C meanwhile can be answered.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run ``es-simhash`` with the arguments of this process, then end the process."""
    try:
        from es_simhash.cli.app import prepare_process, run  # noqa: PLC0415 -- so that Ctrl-C meanwhile is answered

        prepare_process()
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        said = "stopped; run it again"
        failure = f'{{"error": {{"kind": "stopped", "message": "{said}"}}}}'
        sys.stderr.write(f"{failure if '--json' in sys.argv else said}\n")
        code = 130
    sys.exit(code)
