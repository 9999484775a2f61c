"""A page outside its tables: what its sentences claim, what they disclose, and facts of the set-up.

A sentence is a claim if it puts one system of the tables before another, names a ratio of two, or a
throughput of one. What a page says of its method (repeats, warm-up, …) is found by its words; a
word that stands there for another reason only makes an audit milder. Facts (memory, rows, sizes,
settings) count only if the page gives one value for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Final, NamedTuple

from dbdyno.audit.publication import AuditedClaim, PublishedCell
from dbdyno.audit.rules.claims import rates_in
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
    r"|\b(?:one|ten|five) minutes?\b|\d{1,6}\s{0,3}(?:秒|分钟)|时长",
    "warm_up": r"warm(?:ed)?[ -]?up|\bwarm\b|预热|暖机",
    "order": r"interleav|randomi[sz]ed order|in (?:random|turn)|alternat|轮流|交替|随机顺序",
    "client": r"(?:client|generator|sysbench)[^.]{0,60}(?:cpu|machine|host|cores)|压测机|客户端机",
    "versions": r"\b\d+\.\d+\.\d+\b",
    "durability": r"sync_binlog|flush_log_at_trx_commit|synchronous_commit|sync-log|durab"
    r"|双\s*[1一]",
    "rate": r"\bopen[ -]loop\b|arrival rate|--rate[= ][1-9]",
}
SIZE: Final = r"(?<![\d.])(?P<value>\d{1,9}(?:\.\d{1,6})?)\s*(?P<unit>[GT])i?B?(?![A-Za-z])"
ROWS: Final = (
    r"(?<![\d,.])(?P<value>\d[\d,]{0,14}(?:\.\d{1,6})?)\s*"
    r"(?P<unit>万|亿|million|M(?![A-Za-z])|k(?![A-Za-z]))?"
)
EACH: Final = r"(?:(?:each|every|per|one) table|每张?(?:数据)?表|单表|一张表)"
FACTS: Final[Mapping[str, tuple[str, ...]]] = {
    "tables": (r"--(?:oltp[-_])?tables(?:[-_]count)?[= ](?P<value>\d{1,9})(?!\d)",),
    "rows_per_table": (
        r"--(?:oltp[-_])?table[-_]size[= ](?P<value>\d{1,12})(?!\d)",
        rf"{EACH}[^\d.。;；]{{0,20}}{ROWS}\s*(?:rows|records|行|条)",
        rf"{ROWS}\s*(?:rows|records|行|条)\s*(?:per|in each|in every|a) table",
    ),
    "gb_per_table": (
        rf"{EACH}[^。;；\n]{{0,30}}?(?<![\d.]){SIZE}",
        rf"{SIZE} (?:per|for each|a) table",
    ),
    "memory_gb": (
        rf"(?:\b(?:memory|RAM)\b|内存)[^\d.。;；]{{0,12}}{SIZE}",
        rf"{SIZE}\s*(?:of\s+)?(?:(?:DDR\d\s+)?\b(?:memory|RAM)\b|内存)",
    ),
    "round_trip_ms": (
        r"(?:\bping\b|\bRTT\b|round[ -]trip|network(?:'s)? (?:mean |average )?(?:latency|delay)"
        r"|网络(?:平均)?(?:延迟|时延|延时))[^\d.。;；]{0,20}(?P<value>\d{1,9}(?:\.\d{1,6})?)\s*(?:ms|毫秒)",
        r"(?<![\d.])(?P<value>\d{1,9}(?:\.\d{1,6})?)\s*(?:ms|毫秒) "
        r"(?:\w+ )?(?:network|LAN) (?:latency|delay)",
    ),
}
"""What says a fact; where a first pattern finds one the later ones are not tried."""
OF_DATASET: Final = frozenset(("tables", "rows_per_table", "gb_per_table"))
FACTORS: Final = {"万": 1e4, "亿": 1e8, "million": 1e6, "m": 1e6, "k": 1e3, "g": 1.0, "t": 1024.0}
SETTING: Final = re.compile(
    r"\b(innodb_buffer_pool_size|sync_binlog|innodb_flush_log_at_trx_commit|shared_buffers"
    r"|synchronous_commit)\b\s*(?:=|:|：|为|is|of)\s*['\"]?(\w+)",
    re.IGNORECASE,
)
TOOL: Final = re.compile(r"\bsysbench\s*(?:version\s*)?v?([01]\.\d+(?:\.\d+)?)", re.IGNORECASE)


class Facts(NamedTuple):
    """What a page says of its set-up: as the fields of `Publication`."""

    dataset: dict[str, float]
    environment: dict[str, str]
    settings: dict[str, str]
    tool: str


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
        states = rates_in(sentence.text, labels) and len(mentioned(sentence.text, labels)) == 1
        if (compares or states) and sentence.text not in seen:
            seen.add(sentence.text)
            yield AuditedClaim(text=sentence.text)


def disclosed_in(text: str) -> dict[str, str]:
    """What a page tells of its method: for each of `DISCLOSED` the words that say so."""
    found = ((name, re.search(words, text, re.IGNORECASE)) for name, words in DISCLOSED.items())
    return {name: match[0] for name, match in found if match}


def facts_in(text: str) -> Facts:
    """The facts of which a page gives one value; those of which it gives several are left out."""
    lines = (" ".join(line.split()) for line in re.sub(r"<[^>]{0,500}>", " ", text).splitlines())
    bare = "\n".join(filter(None, lines))  # long white space would take patterns long
    found: dict[str, float] = {}
    for name, patterns in FACTS.items():
        matches = ([*re.finditer(one, bare, re.IGNORECASE)] for one in patterns)
        values = set(map(_value, next(filter(None, matches), [])))
        if len(values) == 1:
            found[name] = values.pop()
    settings: dict[str, set[str]] = {}
    for match in SETTING.finditer(bare):
        settings.setdefault(match[1].lower(), set()).add(match[2])
    tools = {match[1] for match in TOOL.finditer(bare)}
    return Facts(
        dataset={name: value for name, value in found.items() if name in OF_DATASET},
        environment={n: f"{value:g}" for n, value in found.items() if n not in OF_DATASET},
        settings={name: values.pop() for name, values in settings.items() if len(values) == 1},
        tool=f"sysbench {tools.pop()}" if len(tools) == 1 else "",
    )


def _value(match: re.Match[str]) -> float:
    unit = match.groupdict().get("unit") or ""
    return float(match["value"].replace(",", "")) * FACTORS.get(unit.lower(), 1.0)


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
