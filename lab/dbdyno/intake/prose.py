"""The sentences of a page outside its tables: those that claim something, and what they disclose.

A sentence is a claim if it puts one system of the tables before another, names a ratio of two, or a
throughput of one. What a page says of its method (repeats, warm-up, …) is found by its words; a
word that stands there for another reason only makes an audit milder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Final, NamedTuple

from dbdyno.audit.publication import AuditedClaim, PublishedCell
from dbdyno.audit.rules.claims import RATE
from dbdyno.audit.sentences import meaning, mentioned

ENDS: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；;])\s*")
LENGTH_MAX: Final = 400
UNREAD: Final = frozenset(("script", "style", "table", "pre", "code", "nav", "head", "footer"))
BLOCKS: Final = frozenset(
    ("p", "li", "div", "h1", "h2", "h3", "h4", "h5", "h6", "br", "td", "blockquote", "section")
)
DISCLOSED: Final[Mapping[str, str]] = {
    "repeats": r"repeated|repetitions?|\b(?:\d+|three|five|several) (?:runs|times)\b|runs each"
    r"|(?:median|average|mean) of (?:\d+|three|five|several)|重复|次测试|取平均|测试\s*\d+\s*次",
    "spread": r"standard deviation|std ?dev|confidence interval|variance|±|error bars?"
    r"|标准差|置信区间|方差|波动",
    "duration": r"--(?:max-)?time[= ]\d+|\b\d+ ?(?:s|sec|seconds|min|minutes)\b"
    r"|\b(?:one|ten|five) minutes?\b|\d+\s*(?:秒|分钟)|时长",
    "warm_up": r"warm(?:ed)?[ -]?up|\bwarm\b|预热|暖机",
    "order": r"interleav|randomi[sz]ed order|in (?:random|turn)|alternat|轮流|交替|随机顺序",
    "client": r"(?:client|generator|sysbench)[^.]{0,60}(?:cpu|machine|host|cores)|压测机|客户端机",
    "versions": r"\b\d+\.\d+\.\d+\b",
    "durability": r"sync_binlog|flush_log_at_trx_commit|synchronous_commit|sync-log|durab"
    r"|双\s*[1一]",
    "rate": r"\bopen[ -]loop\b|arrival rate|--rate[= ][1-9]",
}


class Sentence(NamedTuple):
    """One sentence, and the line in which it begins, counted from 1."""

    text: str
    line: int


def sentences(text: str) -> list[Sentence]:
    """The sentences of a page, those of tables and code left out."""
    blocks = (
        _of_html(text) if re.search(r"<(?:p|table|html|body)\b", text, re.I) else _of_lines(text)
    )
    return [
        Sentence(" ".join(part.split()), line)
        for block, line in blocks
        for part in ENDS.split(block)
        if part.strip() and len(part) <= LENGTH_MAX
    ]


def claims_in(
    said: Sequence[Sentence], labels: Sequence[str], cells: Sequence[PublishedCell]
) -> Iterator[AuditedClaim]:
    """The sentences that claim something of the tables, each once."""
    seen = set()
    for sentence in said:
        found = meaning(sentence.text, labels, cells)
        compares = found.subject and found.other and (found.direction or found.ratios)
        states = RATE.search(sentence.text) and len(mentioned(sentence.text, labels)) == 1
        if (compares or states) and sentence.text not in seen:
            seen.add(sentence.text)
            yield AuditedClaim(text=sentence.text)


def disclosed_in(text: str) -> dict[str, str]:
    """What a page tells of its method: for each of `DISCLOSED` the words that say so."""
    found = ((name, re.search(words, text, re.IGNORECASE)) for name, words in DISCLOSED.items())
    return {name: match[0] for name, match in found if match}


def _of_lines(text: str) -> Iterator[tuple[str, int]]:
    """Paragraphs of Markdown and plain text; lines of one paragraph are joined."""
    block: list[str] = []
    begun, fenced = 1, False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        bare = line.strip()
        is_text = bool(bare) and not fenced and "|" not in bare and not bare.startswith("```")
        if block and (not is_text or re.match(r"[#>*\-+]|\d+\.\s", bare)):
            yield " ".join(block), begun
            block = []
        if is_text:
            begun = begun if block else number
            block.append(re.sub(r"^(?:[#>*\-+]+|\d+\.)\s+", "", bare).replace("**", ""))
    if block:
        yield " ".join(block), begun


def _of_html(text: str) -> Iterator[tuple[str, int]]:
    parser = _Prose()
    parser.feed(text)
    parser.close()
    yield from parser.blocks()


class _Prose(HTMLParser):
    """The text of a page by its blocks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._unread: list[str] = []
        self._blocks: list[tuple[list[str], int]] = [([], 1)]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNREAD:
            self._unread.append(tag)
        if tag in BLOCKS | UNREAD:
            self._blocks.append(([], self.getpos()[0]))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unread:
            del self._unread[self._unread.index(tag) :]
        if tag in BLOCKS | UNREAD:
            self._blocks.append(([], self.getpos()[0]))

    def handle_data(self, data: str) -> None:
        if not self._unread:
            self._blocks[-1][0].append(data)

    def blocks(self) -> Iterator[tuple[str, int]]:
        """Each block with its first line."""
        for parts, line in self._blocks:
            if whole := "".join(parts).strip():
                yield whole, line
