"""The audits of the two publications in `examples/published`, word by word."""

from __future__ import annotations

import os

import pytest

from dbdyno.audit.tables import publication_of
from dbdyno.cli.audit import AuditResult
from dbdyno.language.catalogues import Language
from dbdyno.report.formats.stdout import Output, render
from support.source import ROOT

NAMES = ("greatsql-vs-mysql-2022", "tidb-v3-vs-v2-2019")
GOLDEN = ROOT / "tests" / "golden" / "audits"


@pytest.mark.parametrize("language", list(Language))
@pytest.mark.parametrize("name", NAMES)
def test_the_audit_is_as_agreed(name: str, language: Language) -> None:
    path = ROOT / "examples" / "published" / f"{name}.yaml"
    publication = publication_of(path.read_text(), path.name)
    text = render(AuditResult.of([publication]), Output.MARKDOWN, language)
    golden = GOLDEN / f"{name}-{language.value}.md"
    if os.environ.get("DBDYNO_RENEW_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()
