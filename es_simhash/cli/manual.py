"""A command whose help ends with examples; ``docs/cli.md`` shows the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

_ALL = "es_simhash.help_all"


class Manual(click.Command):
    """
    A command with examples, each a complete command line, and with help in two lengths where it has many options.

    *common*: the options that ``--help`` shows, and ``--help-all`` shows all; by default ``--help`` shows all.
    """

    def __init__(self, *args: Any, examples: Sequence[str], common: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)
        self.common = frozenset([*common, "--help-all", "--help"] if common else ())
        if common:
            self.params.append(
                click.Option(
                    ["--help-all"],
                    is_flag=True,
                    is_eager=True,
                    expose_value=False,
                    callback=_show_all,
                    help="Show all options and exit.",
                )
            )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the common options, or all of them."""
        if not self.common or ctx.meta.get(_ALL):
            super().format_options(ctx, formatter)
            return
        found = [each for each in self.get_params(ctx) if self.common.intersection(each.opts)]
        with formatter.section("Common options"):
            formatter.write_dl([row for each in found if (row := each.get_help_record(ctx))])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's
        """Write each example on one line, so that it can be copied."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def _show_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 -- click's signature
    if value:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()
