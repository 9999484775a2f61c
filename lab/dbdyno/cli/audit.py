"""`dbdyno audit`: what of a published comparison cannot be true, or says more than its numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dbdyno import api
from dbdyno.audit.audit import audit, of_run
from dbdyno.audit.ledger import AuditLedger, LedgerEntry, Severity
from dbdyno.audit.publication import Publication, PublishedTable
from dbdyno.cli import options
from dbdyno.cli.gate import write
from dbdyno.errors import UsageError
from dbdyno.intake.read import read
from dbdyno.language.catalogues import Language, said_in
from dbdyno.language.words import Text, capital, count, listed, name, say
from dbdyno.report.formats import html
from dbdyno.report.formats.stdout import Output, Result, render
from dbdyno.report.parts import (
    Entries,
    Entry,
    Items,
    Paragraph,
    Section,
    Story,
    Table,
    numeric,
    table,
    translated,
)

LOOKS: Final = {
    Severity.CONTRADICTION: "worse",
    Severity.OVER_CLAIM: "doubtful",
    Severity.UNSAFE: "doubtful",
    Severity.NOTE: "note",
    Severity.CONFIRMED: "better",
}
"""How a page colours each weight: as the verdict or finding of a report that is like it."""


def command(
    files: options.Publication = None,
    own_run: options.OwnRun = None,
    mapping: options.ColumnMapping = None,
    page: options.AuditPage = None,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Hold a published comparison's numbers, sentences and set-up against each other."""
    if bool(files) == (own_run is not None):
        raise UsageError(
            "what is to be audited?",
            wanted="files of a publication, or --self RUN for a run of your own",
            found="both" if files else "neither",
        )
    if own_run is not None:
        run = api.load(own_run, workspace)
        publication = of_run(run.plan, run.judgement)
    else:
        publication = read(files or [], mapping)
    result = AuditResult(publication, audit(publication))
    sys.stdout.write(render(result, output, lang))
    if page is not None:
        story = translated(result.story(), lang)
        write(page, html.render(story, (), language=lang).encode())
        said = said_in(say("report: {path}", path=page), lang)
        (sys.stdout if output is Output.PLAIN else sys.stderr).write(f"\n{said}\n")


@dataclass(frozen=True)
class AuditResult(Result):
    """The ledger of one publication."""

    publication: Publication
    ledger: AuditLedger

    def plain(self, language: Language) -> Iterator[Text]:
        """How many of each weight, then the entries."""
        yield name(self.publication.title)
        yield self._sum()
        for entry in self.ledger.entries:
            yield name("")
            yield _heading(entry)
            yield say("  {sentence}", sentence=entry.arithmetic)
            if entry.place:
                yield say("  at: {place}", place=entry.place)

    def markdown(self) -> Iterator[Paragraph | Items]:
        """The same, an item each."""
        yield Paragraph(name(self.publication.title), strong=True)
        yield Paragraph(self._sum())
        yield Items(
            tuple(
                listed(
                    [_heading(one), one.arithmetic, *([name(one.place)] if one.place else [])], "; "
                )
                for one in self.ledger.entries
            )
        )

    def document(self) -> dict[str, Any]:
        """Every entry, and the publication as it was read."""
        return {
            "title": self.publication.title,
            **self.ledger.model_dump(mode="json"),
            "publication": self.publication.model_dump(mode="json"),
        }

    def story(self) -> Story:
        """A page: the entries by weight, then every table as it was read."""
        weights = (
            Section(
                capital(weight.said),
                (Entries(tuple(map(_entry, entries))),),
                folded=weight in (Severity.NOTE, Severity.CONFIRMED),
            )
            for weight in Severity
            if (entries := [one for one in self.ledger.entries if one.severity is weight])
        )
        tables = tuple(map(_as_read, self.publication.tables))
        return Story(
            title=say("Audit of {title}", title=self.publication.title),
            byline=name(self.publication.source),
            conclusion=(self._sum(),),
            sections=(*weights, Section(say("Tables as they were read"), tables, folded=True)),
        )

    def _sum(self) -> Text:
        found = [(one, self.ledger.count(one)) for one in Severity]
        return say(
            "{cells} looked at: {found}",
            cells=count(self.ledger.cells, "cell"),
            found=listed(
                say("{severity} {times}", severity=one.said, times=times)
                for one, times in found
                if times
            ),
        )


def _entry(one: LedgerEntry) -> Entry:
    lines = (one.arithmetic, *([say("at: {place}", place=one.place)] if one.place else []))
    return Entry(one.severity.said, name(one.rule), one.sentence, lines, LOOKS[one.severity])


def _as_read(one: PublishedTable) -> Table:
    at = (f"{axis.replace('_', ' ')} {value}" for axis, value in one.at.items())
    return table(
        listed(part for part in (one.system, one.workload, *at, one.place) if part),
        list(enumerate(one.threads)),
        (numeric(say("threads")), lambda row: row[1]),
        *(
            (numeric(name(metric)), lambda row, column=column: column[row[0]].text)
            for metric, column in one.values.items()
        ),
    )


def _heading(entry: LedgerEntry) -> Text:
    return say(
        "{severity}, {rule}: {sentence}",
        severity=entry.severity.said,
        rule=entry.rule,
        sentence=entry.sentence,
    )
