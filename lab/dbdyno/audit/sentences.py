"""Sentences of a page with a comparison, a share, a factor or a rate: perhaps claims."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dbdyno.audit.facts import BREAK, FENCE, NOT_PROSE, bare

SENTENCES_MAX: Final = 200
LENGTH_MAX: Final = 600
FIGURE: Final = re.compile(
    r"\d\s*(?:%|％|percent\b|times\b|fold\b|[x×](?![\w])|倍|[tq]ps\b|tpm\w?\b|nopm\b|成(?![功为本熟]))"
    r"|(?:transactions|queries|requests) (?:per|a) (?:second|minute)",
    re.IGNORECASE,
)
COMPARISON: Final = re.compile(
    r"\b(?:faster|slower|better|worse|higher|lower|(?:more|less|fewer|rather) than|than"
    r"|outperform\w*|exceed\w*|beats?|superior|inferior|doubl\w+|twice|half|best|worst|fastest"
    r"|slowest|compared (?:to|with)|improve\w*|improvement|degrad\w+|increas\w+|decreas\w+"
    r"|drops?|dropped|declin\w+|regress\w+|gains?|speed-?up|scal(?:es|ed|ing)|stable|steady"
    r"|on par|comparable|similar|no difference|ahead|behind)\b"
    r"|优于|高于|低于|不如|不及|快于|慢于|高出|超过|超出|领先|落后|相当|持平|接近|区别|差距|差异"
    r"|提升|提高|下降|降低|降幅|涨幅|增长|增加|减少|衰减|掉头|翻倍|一半|更[高低快慢好差稳优]"
    r"|最[高低快慢好差优]|稳定|明显|远不",
    re.IGNORECASE,
)
END: Final = re.compile(
    r"(?<=[.!?])(?<!\bvs\.)(?<!e\.g\.)(?<!i\.e\.)[\"'”’)]?\s+(?=[\"'“‘(]?[A-Z0-9])|(?<=[。！？；])"
)
MARK: Final = re.compile(r"(?:[-*+>]|\d{1,3}[.)、])\s+|#{1,6}\s+")
"""The beginning of an item or a heading."""
LINK: Final = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()]{0,600}\)")
NOT_A_SENTENCE: Final = re.compile(
    r"^(?:[+|=-]|\s*$)|\|\s*$|\|.*\||(?<!\S)--[A-Za-z]|^\S+\s*=\s*\S|^!\[|^https?://\S+$"
    r"|^\[\s*\d+s\s*\]"
)
"""Rows of tables, options, settings, pictures, lines of a log."""
WORDS_MIN: Final = 4
WRAPPED_MIN: Final = 60
"""Signs of a line that goes on below, unless the next begins with a small letter."""
MARKUP: Final = re.compile(r"</(?:p|div|li|td)>", re.IGNORECASE)
HAN: Final = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True)
class PageSentence:
    """A sentence and its first line, counted from 1."""

    line: int
    text: str


def sentences_in(text: str) -> list[PageSentence]:
    """A page's possible claims, in order, `SENTENCES_MAX` at most."""
    sentences: dict[str, PageSentence] = {}
    for line, paragraph in _paragraphs(text):
        place = 0
        for part in END.split(paragraph):
            start = paragraph.index(part, place)
            place = start + len(part)
            words = " ".join(LINK.sub(r"\1", part).replace("\\", "").replace("**", "").split())
            if _may_be_a_claim(words):
                at = line + paragraph.count("\n", 0, start)
                sentences.setdefault(words, PageSentence(at, words))
        if len(sentences) >= SENTENCES_MAX:
            break
    return list(sentences.values())[:SENTENCES_MAX]


def _may_be_a_claim(text: str) -> bool:
    han = len(HAN.findall(text))
    is_sentence = han >= WORDS_MIN or len(re.findall(r"[A-Za-z]{2,}", text)) >= WORDS_MIN
    is_fitting = len(text) <= LENGTH_MAX and is_sentence
    return is_fitting and bool(FIGURE.search(text) or COMPARISON.search(text))


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, each with the number of its first line."""
    begun: list[str] = []
    first, is_code, is_markup = 1, False, bool(MARKUP.search(text))
    for number, line in enumerate(bare(text, NOT_PROSE), 1):
        if FENCE.match(line.strip()):
            is_code = not is_code
        is_quoted = is_code or (line.startswith(("    ", "\t")) and not is_markup)
        for place, piece in enumerate(line.split(BREAK)):
            mark = MARK.match(piece.strip())
            words = piece.strip()[mark.end() if mark else 0 :]
            is_prose = not is_quoted and not NOT_A_SENTENCE.search(words)
            goes_on = words[:1].islower() or (begun and len(begun[-1]) >= WRAPPED_MIN)
            if begun and (place or mark or not is_prose or not goes_on):
                yield first, "\n".join(begun)
                begun = []
            if is_prose:
                first = first if begun else number
                begun.append(words)
    if begun:
        yield first, "\n".join(begun)
