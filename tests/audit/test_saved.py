"""A saved publication is read back as it was, and its sentences become claims by uncommenting."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from validation.audit_rates import honest

from dbdyno.audit.audit import audit
from dbdyno.audit.ledger import Severity
from dbdyno.audit.read import read
from dbdyno.audit.saved import text_to_save, write_new, yaml_of
from dbdyno.audit.sentences import PageSentence, sentences_in
from dbdyno.audit.tables import Publication, publication_of
from dbdyno.errors import UsageError
from support.source import ROOT

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
NUMBERS = st.from_regex(r"[+-]?\d{1,9}(\.\d{1,3})?", fullmatch=True)
EXAMPLES = sorted((ROOT / "examples" / "published").glob("*.yaml"))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 999), TEXTS, TEXTS, NUMBERS, st.integers(-9, 9))
def test_what_is_saved_is_read_back_as_it_was(
    seed: int, name: str, text: str, number: str, dropped: int
) -> None:
    publication = honest(random.Random(seed))
    first, *others = publication.tables
    values = {**first.values, "qps": ({"text": number, "dropped": dropped},) * len(first.threads)}
    more = {
        **first.model_dump(),
        "system": name,
        "at": {name: text, "null": number},
        "values": values,
        "is_mean_said": False,
    }
    asked = Publication.model_validate(
        {
            **publication.model_dump(),
            "title": text,
            "unread": [text, name],
            "settings": {name: number, text: text, "nested": {"a": [text, None, True]}},
            "has_prose": True,
            "tables": [more, *others],
        }
    )
    saved = yaml_of(asked, {name: [PageSentence(7, f"{text} is 5 % faster")]})
    assert publication_of(saved, "saved.yaml") == asked


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_published_examples_without_lines_are_saved_and_read_alike(path: Path) -> None:
    (publication,) = read([path])
    assert publication_of(yaml_of(publication, {}), "saved.yaml") == publication


PAGE = """\
# Postern against Mistral

Postern is always 20 % faster
than Mistral. Both are databases! The rest is 30% of it vs. B.

- 在高并发下，Postern 的性能远不如 Mistral。
- 数据库在同一台机器上。

```
this --code is 50 % faster than anything and better
```

## Read only

| threads | Postern TPS | Mistral TPS |
| --- | --- | --- |
| 8 | 240.5 | 200.5 |
| 16 | 300.5 | 300.5 |

| threads | Component |
| --- | --- |
| few | slower than others by 5 % |
"""


def test_sentences_with_figures_or_comparisons_have_their_lines() -> None:
    assert sentences_in(PAGE) == [
        PageSentence(3, "Postern is always 20 % faster than Mistral."),
        PageSentence(4, "The rest is 30% of it vs. B."),
        PageSentence(6, "在高并发下，Postern 的性能远不如 Mistral。"),
    ]
    html = (
        "<nav>Ours is 5 % better than theirs</nav>\n<div>\n    <p>It is twice as\n    fast.</p>Now:"
    )
    assert sentences_in(html) == [PageSentence(3, "It is twice as fast.")]


def test_a_sentence_is_checked_once_it_is_uncommented_and_filled_in(tmp_path: Path) -> None:
    page, saved = tmp_path / "page.md", tmp_path / "saved.yaml"
    page.write_text(PAGE)
    publications = read([page])
    write_new(saved, text_to_save(publications, [page], saved))
    assert read([saved]) == publications
    text = saved.read_text()
    assert f"# {page}, line 3" in text
    item = text[text.index("  # - text:") : text.index(f"  # {page}, line 4")]
    filled = re.sub(r"(?m)^  # ", "  ", item)
    filled = filled.replace('of: ""', "of: Postern").replace('than: ""', "than: Mistral")
    saved.write_text(text.replace(item, filled.replace("ratio_min: 0", "ratio_min: 1.195")))
    (entry,) = [one for one in audit(*read([saved])).entries if one.rule == "headline"]
    assert (entry.severity, entry.place) == (
        Severity.CONTRADICTION,
        "Postern is always 20 % faster than Mistral.",
    )
    with pytest.raises(UsageError, match="exists already"):
        write_new(saved, text)


def test_several_publications_and_other_files_are_not_saved(tmp_path: Path) -> None:
    (one,) = read(EXAMPLES[:1])
    with pytest.raises(UsageError, match="--save writes a single publication"):
        text_to_save([one, one], [], tmp_path / "saved.yaml")
    with pytest.raises(UsageError, match="would not be read as YAML"):
        text_to_save([one], [], tmp_path / "saved.json")


COMMAND = "./sysbench --num-threads=500 --test=./tests/db/select.lua --max-time=600 run"
HEADED = f"# 性能\n\n{COMMAND}\n\n| 并发 | Postern qps | Mistral qps |\n| --- | --- | --- |\n"


def test_a_printed_option_that_the_tables_contradict_is_saved_as_a_comment(tmp_path: Path) -> None:
    page, saved = tmp_path / "page.md", tmp_path / "saved.yaml"
    page.write_text(f"{HEADED}| 50 | 240.5 | 200.5 |\n| 500 | 300.5 | 280.5 |\n")
    (publication,) = read([page])
    text = text_to_save([publication], [page], saved)
    assert publication.load == {"time_s": "600"}
    assert f"\n# load: {{threads: 500}}  # {page}, line 3\n" in text
    assert publication_of(text, "saved.yaml") == publication
    page.write_text(f"{HEADED}| 500 | 300.5 | 280.5 |\n")
    (publication,) = read([page])
    assert publication.load == {"threads": "500", "time_s": "600"}
    assert "# load:" not in text_to_save([publication], [page], saved)
