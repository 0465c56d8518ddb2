"""
A command whose help ends with examples; ``docs/cli.md`` shows the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


class Manual(click.Command):
    """
    A command with examples of its use.

    Args:
        examples:
            Command lines, each a complete example.
        settings:
            As for ``click.Command``.
    """

    def __init__(self, *args: Any, examples: Sequence[str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's
        """Write each example on one line, so that it can be copied."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")
