"""Whatever the lab says can be said in every language: catalogues held against the source."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import get_args, get_type_hints

import polib
import pytest

import dbdyno.judge
import dbdyno.report
from dbdyno.language.catalogues import FOLDER, Language
from dbdyno.language.words import LISTS
from support.sayings import placeholders, sayings, templates

LANGUAGES = [language for language in Language if language is not Language.EN]
STAY = {"TPS", "QPS", "NOPM", "p50", "p95", "p99", "p99.9"}
"""What has letters and is said the same way in every language."""
NAMES = {
    *("system", "systems", "baseline", "workload", "setting", "ignored", "version", "versions"),
    *("metric", "what", "check", "trial", "keys", "name", "kind", "english", "tag"),
    *("run_id", "plan_hash", "created_at", "dbdyno_version", "command", "environment"),
    "earlier",
}
"""Fields that hold labels, keys and what was read elsewhere, which no language changes."""
NO_SENTENCES = {
    *("ClaimedCell.doubts", "Judgement.counted_from_s", "Judgement.tried"),
    *("CounterTable.names", "FunctionCost.callers"),
    *("Code.text", "Drawing.svg", "Figure.spec", "Table.looks", "Timeline.title"),
    "MachineRatio.machine",
    *("Promise.value", "Sentence.template"),
    *("VerdictLook.sign", "VerdictLook.background", "VerdictLook.line"),
    *("Finding.values", "Reason.values", "Telling.rule", "Telling.evidence", "Telling.advice"),
}
"""Fields that hold what is copied, drawn, looked up elsewhere or a template: a chart, a trial."""
TWO_WORDS = re.compile(r"(?<![-\w])[A-Za-z]{3,} [a-z]{2,}")
PLACEHOLDER = re.compile(r"\{[^}]*\}")
CODE = re.compile("`[^`]*`")
CHINESE = "[\u4e00-\u9fff]"


def entries(language: Language) -> list[polib.POEntry]:
    files: list[Path] = sorted((FOLDER / language.value).glob("*.po"))
    return [entry for file in files for entry in polib.pofile(str(file))]


def test_every_template_is_a_literal_that_a_catalogue_can_have():
    assert [saying.place for saying in sayings() if saying.is_put_together] == []


def test_every_list_has_a_sign_that_catalogues_know():
    signs = {text for saying in sayings() if saying.function == "listed" for text in saying.signs}
    assert {f"{{first}}{sign}{{rest}}" for sign in signs} <= set(LISTS)


def test_no_english_hides_among_the_values():
    hidden = [(s.place, text) for s in sayings() for text in s.texts if TWO_WORDS.search(text)]
    assert hidden == []


def has_words(template: str) -> bool:
    """Whether anything but values and signs stands in it; what has none may do without an entry."""
    return bool(re.search("[A-Za-z]", PLACEHOLDER.sub("", template)))


def test_fields_of_judge_and_report_hold_what_was_said():
    """A field is a sentence, which only `words` can make, or one of the names listed above."""
    plain = {
        f"{kind.__name__}.{field}": kind.__module__
        for kind in nouns(dbdyno.judge, dbdyno.report)
        for field, hint in get_type_hints(kind).items()
        if (hint is str or str in get_args(hint)) and field not in NAMES
    }
    assert plain.keys() - NO_SENTENCES == set(), plain


def nouns(*packages: ModuleType) -> Iterator[type]:
    for package in packages:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for kind in vars(module).values():
                is_of_it = inspect.isclass(kind) and kind.__module__ == module.__name__
                if is_of_it and get_type_hints(kind):
                    yield kind


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalogue_has_every_template(language):
    known = {entry.msgid for entry in entries(language)}
    missing = {text: place for text, place in templates().items() if text not in known}
    assert {text: place for text, place in missing.items() if has_words(text)} == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_catalogue_has_nothing_twice_and_nothing_unused(language):
    times = Counter(entry.msgid for entry in entries(language))
    assert [text for text, count in times.items() if count > 1] == []
    assert times.keys() - templates().keys() == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_template_keeps_its_values_and_their_formats(language):
    for entry in entries(language):
        assert placeholders(entry.msgstr) == placeholders(entry.msgid), entry.msgid


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_template_is_translated_but_for_what_stays(language):
    same = {entry.msgid for entry in entries(language) if entry.msgstr in ("", entry.msgid)}
    assert {text for text in same if has_words(text)} == STAY


def test_no_english_is_left_in_a_translation():
    bare = [CODE.sub("", PLACEHOLDER.sub("", entry.msgstr)) for entry in entries(Language.ZH)]
    left = [text for text in bare if TWO_WORDS.search(text)]
    assert left == []


def test_chinese_is_set_as_chinese():
    """Full-width signs beside Chinese, and a space between it and Latin letters or digits."""
    narrow = re.compile(f"{CHINESE} ?[,;:!?()]|[,;:!?()] ?{CHINESE}")
    close = re.compile(f"{CHINESE}[A-Za-z0-9]|[A-Za-z0-9]{CHINESE}")
    for entry in entries(Language.ZH):
        bare = PLACEHOLDER.sub("\u2026", entry.msgstr)
        assert not narrow.search(bare), entry.msgstr
        assert not close.search(bare), entry.msgstr
