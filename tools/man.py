"""Writes the manual page of dbdyno from the help of all commands.

usage: .venv/bin/python tools/man.py FILE        as `make release` does
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from typer import Context
from typer._click import Command, HelpFormatter

from dbdyno import __version__
from dbdyno.cli.app import SECTIONS, command_line


class Roff(HelpFormatter):
    """Help as the source of a manual page."""

    def write_paragraph(self) -> None:
        pass  # each part begins a paragraph by itself

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        self.write(f".PP\n.B {escaped(f'{prog} {args}')}\n")

    def write_heading(self, heading: str) -> None:
        self.write(f".PP\n.I {escaped(heading)}\n")

    def write_text(self, text: str) -> None:
        self.write(f".PP\n{escaped(text)}\n")

    def write_dl(self, rows: Sequence[tuple[str, str]], **_: object) -> None:
        self.write("".join(f".TP\n.B {escaped(word)}\n{escaped(text)}\n" for word, text in rows))


def escaped(text: str) -> str:
    """A line of text, in which roff sees no request."""
    return "\\&" + " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")


def described(command: Command, parent: Context | None = None) -> str:
    """The help of a command and of the commands below it; those of dbdyno in its sections."""
    name, settings = command.name if parent else "dbdyno", command.context_settings
    with Context(command, parent=parent, info_name=name, **settings) as context:
        inner = getattr(command, "commands", {})
        if not parent:
            sections = {f'.SH "{section}"\n': names for section, names in SECTIONS.items()}
            about = [f"dbdyno \\- {escaped(command.help or '')}\n"]
        else:
            command.format_help(context, formatter := Roff(width=200))
            sections, about = {"": inner}, [f".SS {context.command_path}\n", formatter.getvalue()]
        for heading, names in sections.items():
            about += [heading, *(described(inner[one], context) for one in names)]
        return "".join(about)


if __name__ == "__main__":
    head = f'.TH DBDYNO 1 "" "dbdyno {__version__}" "User Commands"\n.SH NAME\n'
    Path(sys.argv[1]).write_text(head + described(command_line()), encoding="utf-8")
