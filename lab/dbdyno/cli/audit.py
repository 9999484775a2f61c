"""`dbdyno audit`: impossible figures and overstated claims of a published comparison."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from dbdyno import api
from dbdyno.audit.audit import audit, between, of_run
from dbdyno.audit.ledger import AuditLedger, LedgerEntry, Severity
from dbdyno.audit.read import read
from dbdyno.audit.saved import text_to_save, write_new
from dbdyno.audit.tables import Publication, PublishedTable
from dbdyno.budget import within
from dbdyno.cli import options
from dbdyno.cli.gate import write
from dbdyno.errors import GateError, UsageError
from dbdyno.language.catalogues import Language, said_in
from dbdyno.language.words import Text, capital, count, listed, name, say
from dbdyno.report.formats import html
from dbdyno.report.formats.stdout import Output, Result, print_lines, render
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
"""Colour of each severity on the page, by the name of a report's verdict or finding."""
FAULTS: Final = (Severity.CONTRADICTION, Severity.OVER_CLAIM)
BETWEEN: Final = say("Between these publications")


def command(
    files: options.Publication = None,
    own_run: options.OwnRun = None,
    mapping: options.ColumnMapping = None,
    page: options.AuditPage = None,
    save_as: options.AuditSave = None,
    exit_code: options.AuditExitCode = False,
    workspace: options.Workspace = options.WORKSPACE,
    output: options.OutputAs = Output.PLAIN,
    lang: options.Lang = Language.EN,
) -> None:
    """Look for contradictions in a published benchmark. It reads files and measures nothing."""
    if bool(files) == (own_run is not None):
        raise UsageError(
            "what is to be audited?",
            wanted="files of a publication, or --self RUN for a run of your own",
            found="both" if files else "neither",
        )
    if own_run is not None and mapping is not None:
        raise UsageError(
            "--mapping says what the columns of a publication's tables mean",
            found="also --self, which reads a run",
            hint="leave one of them out",
        )
    if own_run is not None:
        run = api.load(own_run, workspace)
        result = AuditResult.of((of_run(run.plan, run.judgement),))
    else:
        result = within("the publication", lambda: AuditResult.of(read(files or [], mapping)))
    if save_as is not None:
        publications = [one.publication for one in result.audited]
        text = within("the publication", lambda: text_to_save(publications, files or [], save_as))
        write_new(save_as, text)
    sys.stdout.write(render(result, output, lang))
    if page is not None:
        story = translated(result.story(), lang)
        write(page, html.render(story, (), language=lang).encode())
        said = said_in(say("report: {path}", path=page), lang)
        print_lines(f"\n{said}", sys.stdout if output is Output.PLAIN else sys.stderr)
    if save_as is not None:
        said = said_in(say("publication: {path}", path=save_as), lang)
        print_lines(f"\n{said}", sys.stdout if output is Output.PLAIN else sys.stderr)
    if exit_code:
        _check(result)


def _check(result: AuditResult) -> None:
    """Raise GateError for a contradiction or an over-claim."""
    entries = [one for ledger in result.ledgers() for one in ledger.entries]
    faults = [one for one in entries if one.severity in FAULTS]
    if faults:
        times = Counter(str(one.severity.said) for one in faults)
        raise GateError(
            f"the audit fails: {', '.join(f'{word} {number}' for word, number in times.items())}",
            found=f"{faults[0].sentence}: {faults[0].arithmetic}",
        )


class AuditedPublication(NamedTuple):
    """A publication and its entries."""

    publication: Publication
    ledger: AuditLedger


@dataclass(frozen=True)
class AuditResult(Result):
    """The ledger of each publication, and a common ledger of several."""

    audited: tuple[AuditedPublication, ...]
    between: AuditLedger | None

    @classmethod
    def of(cls, publications: Sequence[Publication]) -> Self:
        """Audits them, and holds several against each other."""
        audited = tuple(AuditedPublication(one, audit(one)) for one in publications)
        return cls(audited, between(publications) if len(audited) > 1 else None)

    def ledgers(self) -> list[AuditLedger]:
        """Of each publication, and between several."""
        return [ledger for _, ledger in self._ledgers()]

    def _ledgers(self) -> Iterator[tuple[Text, AuditLedger]]:
        for audited in self.audited:
            yield name(audited.publication.title), audited.ledger
        if self.between is not None:
            yield BETWEEN, self.between

    def plain(self, language: Language) -> Iterator[Text]:
        """Counts by weight, then the entries."""
        for number, (title, ledger) in enumerate(self._ledgers()):
            yield from [name("")] if number else []
            yield title
            yield _sum(ledger)
            for entry in ledger.entries:
                yield name("")
                yield _heading(entry)
                yield say("  {sentence}", sentence=entry.arithmetic)
                if entry.place:
                    yield say("  at: {place}", place=entry.place)

    def markdown(self) -> Iterator[Paragraph | Items]:
        """The same, an item each."""
        for title, ledger in self._ledgers():
            yield Paragraph(title, strong=True)
            yield Paragraph(_sum(ledger))
            yield Items(
                tuple(
                    listed(
                        [_heading(one), one.arithmetic, *([name(one.place)] if one.place else [])],
                        "; ",
                    )
                    for one in ledger.entries
                )
            )

    def document(self) -> dict[str, Any]:
        """Every entry, and the publications as read; a single publication has its own fields."""
        audited = [
            {
                "title": one.publication.title,
                **one.ledger.model_dump(mode="json"),
                "publication": one.publication.model_dump(mode="json"),
            }
            for one in self.audited
        ]
        if self.between is None:
            return audited[0]
        return {"audited": audited, "between": self.between.model_dump(mode="json")}

    def story(self) -> Story:
        """A page: of each publication the entries by weight, then its tables as they were read."""
        sections: list[Section] = []
        for title, ledger in self._ledgers():
            sections += [
                Section(
                    capital(weight.said)
                    if len(self.audited) == 1
                    else say("{title}: {weight}", title=title, weight=weight.said),
                    (Entries(tuple(map(_entry, entries))),),
                    folded=weight in (Severity.NOTE, Severity.CONFIRMED),
                )
                for weight in Severity
                if (entries := [one for one in ledger.entries if one.severity is weight])
            ]
        tables = tuple(_as_read(one) for a in self.audited for one in a.publication.tables)
        titles = listed(one.publication.title for one in self.audited)
        return Story(
            title=say("Audit of {title}", title=titles),
            byline=listed(one.publication.source for one in self.audited if one.publication.source),
            conclusion=tuple(_sum(ledger) for _, ledger in self._ledgers()),
            sections=(*sections, Section(say("Tables as they were read"), tables, folded=True)),
        )


def _sum(ledger: AuditLedger) -> Text:
    counts = [(one, ledger.count(one)) for one in Severity]
    return say(
        "{cells} looked at: {found}",
        cells=count(ledger.cells, "cell"),
        found=listed(
            say("{severity} {times}", severity=one.said, times=times)
            for one, times in counts
            if times
        )
        or say("nothing"),
    )


def _entry(entry: LedgerEntry) -> Entry:
    lines = (entry.arithmetic, *([say("at: {place}", place=entry.place)] if entry.place else []))
    return Entry(
        entry.severity.said, name(entry.rule), entry.sentence, lines, LOOKS[entry.severity]
    )


def _as_read(printed: PublishedTable) -> Table:
    at = (f"{axis.replace('_', ' ')} {value}" for axis, value in printed.at.items())
    return table(
        listed(part for part in (printed.system, printed.workload, *at, printed.place) if part),
        list(enumerate(printed.threads)),
        (numeric(say("threads")), lambda row: row[1]),
        *(
            (numeric(name(metric)), lambda row, column=column: column[row[0]].text)
            for metric, column in printed.values.items()
        ),
    )


def _heading(entry: LedgerEntry) -> Text:
    return say(
        "{severity}, {rule}: {sentence}",
        severity=entry.severity.said,
        rule=entry.rule,
        sentence=entry.sentence,
    )
