"""A publication as YAML, from which `publication_of` reads an equal publication.

People go on from it: they correct and complete the tables, and turn sentences of the pages, which
stand below `claims` as comments, into claims.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dbdyno.audit.facts import facts_in, opposed
from dbdyno.audit.read import YAML_SUFFIXES, text_of
from dbdyno.audit.sentences import PageSentence, sentences_in
from dbdyno.audit.tables import NUMBER, Publication, publication_of
from dbdyno.errors import StoreError, UsageError

HEAD: Final = """\
# Written by `dbdyno audit --save`, read by `dbdyno audit`. Correct what was misread: `lines` has,
# for each number of a table, its line in the file that `place` names."""
CLAIMS: Final = """\
# Sentences with a figure or a comparison. To check a sentence, remove "# " before its lines, and
# name the systems (of, than) and the claimed ratio of the first to the second (ratio_min,
# ratio_max). No workloads, threads or at mean all cells; docs/how-to/audit.md explains the keys."""
DISCLOSED: Final = """\
# What the page says about its method; also order, client, versions, durability, rate:
# disclosed: {repeats: three runs, spread: 2 %, duration: 300 s, warm_up: 60 s}"""
OPPOSED: Final = "# Of printed command lines, left out because the tables have others:"
UNREAD: Final = """\
# Not understood. Add to the tables what belongs there, then remove it here."""
PLAIN: Final = re.compile(r"(?!(?:true|false|null|yes|no|on|off|y|n)$)[a-z][a-z0-9_]*")
LAST: Final = ("unread", "claims", "changes", "tables")
"""Keys below all others, in this order."""


def text_to_save(publications: Sequence[Publication], files: Sequence[Path], path: Path) -> str:
    """The only publication as the text of a YAML file.

    Args:
        files: of the publication; sentences are taken from pages among them.
        path: of the YAML file.

    Raises:
        UsageError: the file's name is not of YAML; several publications; a publication too
            large to be read back.
    """
    if path.suffix not in YAML_SUFFIXES:
        raise UsageError(
            f"--save {path} would not be read as YAML",
            wanted=f"a file name that ends with {' or '.join(YAML_SUFFIXES)}",
        )
    if len(publications) != 1:
        raise UsageError(
            "--save writes a single publication",
            found=f"{len(publications)}: {', '.join(one.title for one in publications)}",
            hint="audit the files of each publication by themselves",
        )
    (publication,) = publications
    pages = (
        [] if publication.is_record else [one for one in files if one.suffix not in YAML_SUFFIXES]
    )
    texts = {str(page): text_of(page) for page in pages}
    sentences = {source: sentences_in(page_text) for source, page_text in texts.items()}
    opposed_facts = [
        line
        for source, page_text in texts.items()
        for line in _opposed_by(publication, facts_in(page_text, source))
    ]
    text = yaml_of(publication, sentences, opposed_facts)
    publication_of(text, str(path))
    return text


def _opposed_by(publication: Publication, facts: Publication) -> Iterator[str]:
    """Comments on facts of a page that the tables contradict, each with its line."""
    for name in opposed(facts.load, publication.tables):
        place = _printable(facts.places[f"load.{name}"])
        yield f"# load: {{{name}: {_scalar(facts.load[name])}}}  # {place}"


def write_new(path: Path, text: str) -> None:
    """Write a new file; UsageError if it exists, StoreError if it cannot be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise UsageError(
            f"{path} exists already", hint="give another name, or remove this file"
        ) from error
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written", found=error.strerror, hint="give another file"
        ) from error


def yaml_of(
    publication: Publication,
    sentences: Mapping[str, Sequence[PageSentence]],
    opposed_facts: Sequence[str] = (),
) -> str:
    """The publication, and sentences by file as claims to fill in.

    Args:
        opposed_facts: comments on facts that its tables contradict.
    """
    fields = publication.model_dump(mode="json", exclude_defaults=True)
    names = [name for name in fields if name not in LAST]
    lines = [HEAD, *(["", OPPOSED, *opposed_facts] if opposed_facts else [])]
    for name in (*names, *LAST):
        if name == "claims":
            lines += _claims(publication, fields.get(name, []), sentences)
        elif name in fields:
            lines += [""] if name in LAST else []
            lines += [UNREAD] if name == "unread" else []
            lines += _block(name, fields[name])
    return "\n".join(lines) + "\n"


def _claims(
    publication: Publication, claims: Sequence[Any], sentences: Mapping[str, Sequence[PageSentence]]
) -> Iterator[str]:
    unfilled = [(source, one) for source, of_page in sentences.items() for one in of_page]
    if unfilled and not publication.disclosed:
        yield f"\n{DISCLOSED}"
    if unfilled:
        yield f"\n{CLAIMS}"
        systems = dict.fromkeys(table.system for table in publication.tables)
        yield f"# The tables have these systems: {_printable(', '.join(systems))}."
    if unfilled or claims:
        yield "claims:" if unfilled else "\nclaims:"
    for claim in claims:
        yield from _item(claim)
    for source, sentence in unfilled:
        yield f"  # {_printable(source)}, line {sentence.line}"
        yield f"  # - text: {_scalar(sentence.text)}"
        yield '  #   of: ""'
        yield '  #   than: ""'
        yield "  #   metric: transactions_per_s"
        yield "  #   workloads: []"
        yield "  #   threads: []"
        yield "  #   at: {}"
        yield "  #   holds: each"
        yield "  #   ratio_min: 0"
        yield "  #   ratio_max:"


def _block(name: str, value: object) -> Iterator[str]:
    """A key of the publication: an item or an entry a line."""
    if isinstance(value, dict) and value:
        yield f"{_scalar(name)}:"
        yield from (f"  {_scalar(key)}: {_flow(one)}" for key, one in value.items())
    elif isinstance(value, list) and value:
        yield f"{_scalar(name)}:"
        for item in value:
            yield from _item(item)
    else:
        yield f"{_scalar(name)}: {_flow(value)}"


def _item(item: object) -> Iterator[str]:
    """An item of a list; of its columns each has a line."""
    if not isinstance(item, dict) or not item:
        yield f"  - {_flow(item)}"
        return
    for number, (key, value) in enumerate(item.items()):
        start = "  - " if number == 0 else "    "
        if isinstance(value, dict) and any(isinstance(one, list) for one in value.values()):
            yield f"{start}{_scalar(key)}:"
            yield from (f"      {_scalar(name)}: {_flow(one)}" for name, one in value.items())
        else:
            yield f"{start}{_scalar(key)}: {_flow(value)}"


def _flow(value: object) -> str:
    """A value on one line; a number with its digits as they were printed."""
    if isinstance(value, dict):
        if value.keys() == {"text"} and NUMBER.fullmatch(str(value["text"])):
            return str(value["text"])
        return "{" + ", ".join(f"{_scalar(k)}: {_flow(one)}" for k, one in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return _scalar(value)


def _scalar(value: object) -> str:
    """A text in quotes, but for plain names, and for numbers, which are read as text."""
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    if not isinstance(value, str):
        return "null" if value is None else json.dumps(value)
    if NUMBER.fullmatch(value) or PLAIN.fullmatch(value):
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(sign if sign.isprintable() else f"\\U{ord(sign):08x}" for sign in quoted)


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)
