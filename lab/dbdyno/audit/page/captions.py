"""Meaning of the headings and words above a published table.

Each of nested headings gives one axis: the workload, the system, the metric, the size of the buffer
pool or the load level, whichever stands outside. Generic words ("Results") give none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

from dbdyno.audit.page.columns import (
    AVERAGED,
    BUFFER_POOL,
    HEADING_MAX,
    LATENCY,
    LEVEL_UNIT,
    PERCENTILE,
    RATE_METRICS,
    RATES,
    Mapping,
    TableColumn,
    metric_column,
    metric_of,
    size_gb_of,
)

LABEL_MAX: Final = 48
WORDS_MAX: Final = 6
"""Signs and words of a system's name; longer ones are a sentence."""
BUFFER_POOL_SIZE: Final = re.compile(
    r"(?:(?:innodb[ _])?buffer[ _]pool(?:[ _]size)?|(?<![a-z])ibp)"
    r"\s*(?:=|:|：|of|is|为)?\s*(\d+)\s*G(?:i?B)?",
    re.IGNORECASE,
)
SIZE_OF_POOL: Final = re.compile(
    r"(?<![\d.])(\d+)\s*G(?:i?B)?\s*(?:of\s+)?(?:(?:innodb[ _])?buffer[ _]pool|ibp(?![a-z]))",
    re.IGNORECASE,
)
BUFFER_POOL_WORDS: Final = re.compile(r"buffer[ _]pool|(?<![a-z])ibp(?![a-z])", re.IGNORECASE)
SIZED: Final = re.compile(r"(.*\S)\s*[(（]\s*(\d{1,6})\s*G(?:i?B)?\s*[)）]", re.IGNORECASE)
"""A name with a size of memory: "MySQL (48G)"."""
LEVEL: Final = re.compile(
    rf"(?<![\d.,])(\d{{1,6}})\s*{LEVEL_UNIT}(?![a-z])"
    r"|(?:threads|concurrency|connections|clients?|线程数?|并发数?)\s*[=:：][\s*]{0,4}(\d{1,6})(?!\d)",
    re.IGNORECASE,
)
MENTION: Final = re.compile(rf"{LEVEL.pattern}|\d,\d{{3}}\s*{LEVEL_UNIT}(?![a-z])", re.IGNORECASE)
"""A load level, or the end of thousands, whose digits are not taken."""
GAP: Final = r"[^\S\n]*"
BETWEEN: Final = r"[-、/~～\u2013\u2014和及与到至]"
"""Between the numbers of a list or a range."""
NOT_ALONE_BEFORE: Final = re.compile(
    rf"(?:(?<![\d.])\d{{1,6}}{GAP}(?:{BETWEEN}|[,，]\s*\d{{1,6}}\s*[,，]|[,，]?\s*(?:and|or|to))"
    r"|\d\s*[x×]"
    r"|(?<![a-z])(?:up to|over|above|below|under|beyond|than|least|most|until|from|per"
    r"|(?:each|every)(?! (?:test|run|round|case|cell|system|workload))(?: \w{1,12}){0,2})"
    r"|最[多少大高]|至少|超过|每(?![次轮组])\w{0,8})\s*$",
    re.IGNORECASE,
)
"""Before a load level that ends a list or a range, is a limit, or is of one of several clients."""
NOT_ALONE_BEHIND: Final = re.compile(
    rf"{GAP}(?:(?:per|each|or (?:more|less|fewer))(?![a-z])"
    r"|(?:to\s|[-~～\u2013\u2014到至])\s*\d|以[上下内])",
    re.IGNORECASE,
)
LISTED_BEHIND: Final = re.compile(rf"{GAP}(?:{BETWEEN}|[,，]|(?:and|or|to)\s)\s*\d", re.IGNORECASE)
"""The rest of a list behind "threads: 8"."""
NEAR: Final = 40
"""Signs around a load level that say if it is the only one."""
TPCC: Final = "tpcc"
WORKLOADS: Final = {
    "update_non_index": r"(?:update[ _-])?non[ _-]?index(?:ed)?|非索引更新|インデックス以外",
    "update_index": r"update[ _-]index|索引更新|(?<!非)インデックス(?!以外).{0,9}更新",
    "point_select": r"point[ _-]selects?|点查|ポイントセレクト",
    "read_write": r"read[ _/-](?:and )?write|^rw(?= )|读写|読み取り/書き込み",
    "read_only": r"read[ _-]only|^ro(?= )|只读|読み取り専用",
    "write_only": r"write[ _-]only|^wo(?= )|只写|纯写|書き込み専用",
    "insert": r"(?<!bulk[ _-])(?<![a-z])inserts?(?![a-z])|插入",
    "delete": r"(?<![a-z])deletes?(?![a-z])|删除",
    TPCC: r"tp(?:ro)?c-?c\b",
}
"""Tests of sysbench by the end of their names, and TPC-C."""
ESCAPE: Final = r"\\"
"""Before a sign in Markdown."""
OLTP: Final = "|".join(name for name in WORKLOADS if name != TPCC).replace("_", rf"{ESCAPE}?_")
SYSBENCH_TEST: Final = re.compile(rf"(?<![a-z_])oltp{ESCAPE}?_(?:{OLTP})(?![a-z_])", re.IGNORECASE)
STATEMENTS: Final = {
    "select": r"(?<!point[ _-])\bselects?\b",
    "update": r"(?<![ _-])\bupdates?\b(?![ _-](?:non|index))|(?<!索引)更新",
}
"""Tests of a single kind of statement, of which sysbench has several."""
WHOLE: Final = (
    r"\s*(?:requests?|quer(?:y|ies)|operations?|tests?|workloads?|performance|scenarios?)?"
    r"\s*(?=$|[(（])"
)
"""The rest of a caption without other names, as its other words may be of a sentence."""
GENERAL: Final = {
    "read": rf"^reads?{WHOLE}|[(（]\s*reads?\s*[)）]|纯读|读(?:性能|测试|场景|请求)",
    "write": rf"^writes?{WHOLE}|[(（]\s*writes?\s*[)）]|写(?:性能|测试|场景|请求)",
    "mixed": rf"^mixed{WHOLE}|[(（]\s*mixed\s*[)）]|混合",
}
"""Tests of unknown statements; a mixed test has other shares on each page."""
KINDS: Final = ((WORKLOADS, "oltp_"), (STATEMENTS, ""), (GENERAL, ""))
"""Names of workloads, the plainest first, and their beginnings."""
PAIR: Final = re.compile(r"([^\s()（）/|,，:：]{1,30})\s?/\s?([^\s()（）/|,，:：]{1,30})")
COMPARISON: Final = re.compile(
    r"\bvs\b|\bversus\b|\bagainst\b|\bcompar(?:ed|ing|ison)\b|对比|比较|相比", re.IGNORECASE
)
NUMBERING: Final = re.compile(
    r"\s*(?:(?:\d+(?:\.\d+)*|[(（]?\d+[)）])(?:[.、:：]?\s+|、)(?=\D)|[一二三四五六七八九十]+、)"
)
SENTENCE: Final = re.compile(r"[.。!！?？;；]\s*$|[，。；]|, |\. ")
OPTION: Final = re.compile(r"(?<!\S)--[a-z]|(?<!\S)-[a-z] ?\d", re.IGNORECASE)
"""Of a command line."""
NAMELESS: Final = (COMPARISON, SENTENCE, OPTION)
"""In captions that name no system."""
PRODUCTS: Final = (
    r"mysql|maria|postgre|percona|tidb|oceanbase|polardb|greatsql|gaussdb|aurora|oracle|yugabyte"
    r"|cockroach|vitess"
)
PRODUCT: Final = re.compile(rf"{PRODUCTS}|\bv?\d+\.\d+", re.IGNORECASE)
SIZES: Final = re.compile(
    r"(?:\d[\d,.]*\s*(?:k|m|million|万|百万|亿)?|\b(?:one|two|four|eight|ten))\s*"
    r"(?:tables?|rows|records|warehouses|minutes?|hours?|seconds?|GB?|张表|行|小时|分钟|秒)"
    r"(?![a-z])",
    re.IGNORECASE,
)
GENERIC: Final = re.compile(
    r"(?<![a-z])(?:results?|samples?|expected|each|tests?|testing|benchmarks?|performance|summary|overview|data|tables?"
    r"|figures?|charts?|below|above|following|follows|as|are|is|were|the|of|in|for|with|and|on"
    r"|our|shows?|numbers?|details?|workloads?|scenarios?|cases?|mode|type|report|conclusions?|oltp"
    r"|sysbench|pgbench|hammerdb|throughput|appendix|raw|full|final|here|how|we|this|that|r[ow]|wo)(?![a-z])"
    r"|[表图]\s*\d*|测试|结果|性能|数据|如下|场景|报告|总结|所示|下表|下图|压测|详细|模式|情况"
    r"|吞吐量?|负载|附录|请求|汇总",
    re.IGNORECASE,
)


def said_by(captions: Sequence[str], mapping: Mapping, words: PageWords) -> Mapping:
    """The mapping, completed by the nearest captions with a workload and a size of memory.

    Args:
        words: of the page; they tell if a size alone, as in "### 8G", is of the buffer pool.
    """
    near = [caption[-HEADING_MAX:] for caption in captions]
    workloads = filter(None, map(_workload_in, near))
    sizes = (_pool_in(caption) or words.pool_alone(caption, captions) for caption in near)
    pool = next(filter(None, sizes), "")
    return mapping.model_copy(
        update={
            "workload": mapping.workload or next(workloads, ""),
            "at": mapping.at or ({BUFFER_POOL: pool} if pool else {}),
        }
    )


def _pool_in(caption: str) -> str:
    """The size of the buffer pool in a caption, before or behind its name; empty without."""
    match = BUFFER_POOL_SIZE.search(caption) or SIZE_OF_POOL.search(caption)
    return match[1] if match else ""


def metric_in(captions: Sequence[str], mapping: Mapping) -> TableColumn | None:
    """The metric of columns that name systems only: the mapping's, or the nearest caption's."""
    if mapping.metric:
        return TableColumn(metric=mapping.metric)
    for caption in captions:
        text = caption[-HEADING_MAX:]
        if pair_in([text]):  # two metrics, and either may be meant
            continue
        column = metric_column(text, mapping)
        is_latency = LATENCY.search(text) or PERCENTILE.search(text)
        if column and (column.metric in RATE_METRICS or is_latency):
            return column
    return None


def sole_workload_in(text: str) -> tuple[str, int] | None:
    """The only test of sysbench with its whole name in a text, and its line; None for several."""
    lines: dict[str, int] = {}
    for match in SYSBENCH_TEST.finditer(text):
        name = re.sub(ESCAPE, "", match[0]).lower()
        lines.setdefault(name, text.count("\n", 0, match.start()) + 1)
        if len(lines) > 1:
            return None
    return next(iter(lines.items()), None)


def _workload_in(text: str) -> str:
    """The only workload in a text; empty if it names none, or several."""
    bare = _without_number(text)
    for kind, begin in KINDS:
        names = [name for name, words in kind.items() if re.search(words, bare, re.IGNORECASE)]
        if names:
            return "" if len(names) > 1 else TPCC if names == [TPCC] else f"{begin}{names[0]}"
    return ""


def _without_number(caption: str) -> str:
    """A heading without its number; "16 GB" is a size."""
    numbering = NUMBERING.match(caption) if size_gb_of(caption) is None else None
    return caption[numbering.end() if numbering else 0 :].strip()


def workload_names(texts: Sequence[str]) -> dict[str, str]:
    """Names of the workloads in a column: known ones, unless two of its texts would be the same."""
    names = {text: _workload_in(text) or text for text in dict.fromkeys(texts)}
    times = Counter(names.values())
    return {text: name if times[name] == 1 else text for text, name in names.items()}


def pair_in(captions: Sequence[str]) -> tuple[str, str] | None:
    """The metrics of tables with two numbers in a cell, as in "results (QPS / p95)"."""
    for caption in captions:
        for match in PAIR.finditer(caption[-HEADING_MAX:]):
            if metric_of(match[1]) and metric_of(match[2]):
                return match[1], match[2]
    return None


def by_workload(systems: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The workload and the system in each name, if the columns of a table are of workloads."""
    parts = {name: (known, _label_in(name)) for name in systems if (known := _workload_in(name))}
    is_plain = len(parts) == len(set(systems)) == len(set(parts.values()))
    return parts if is_plain else {name: ("", name) for name in systems}


def are_workloads(texts: Sequence[str]) -> bool:
    """Recognises a column of workloads by its cells."""
    return all(map(_workload_in, texts))


def levels_named(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """The load levels in a text, each with its place; 0 for a list, a limit or a share."""
    for match in MENTION.finditer(text):
        before = text[max(0, match.start() - NEAR) : match.start()]
        behind = text[match.end() : match.end() + NEAR]
        is_alone = not (
            NOT_ALONE_BEFORE.search(before)
            or NOT_ALONE_BEHIND.match(behind)
            or (match[2] and LISTED_BEHIND.match(behind))
        )
        if not before.endswith("_"):  # as of max_connections
            yield int(match[1] or match[2] or 0) if is_alone else 0, match


def level_in(captions: Sequence[str]) -> str:
    """The load level of a table without a column for it; empty if the captions name none."""
    for caption in captions:
        levels = {level for level, _ in levels_named(caption[-HEADING_MAX:])}
        if len(levels) == 1 and 0 not in levels:
            return str(levels.pop())
    return ""


def labels_in(captions: Sequence[str]) -> list[str]:
    """Captions that may name a system, without the words for anything else, innermost first."""
    return list(filter(None, map(_label_in, captions)))


def _label_in(caption: str) -> str:
    if len(caption) > HEADING_MAX or any(p.search(caption) for p in NAMELESS):
        return ""
    text = SIZE_OF_POOL.sub(" ", BUFFER_POOL_SIZE.sub(" ", _without_number(caption)))
    workloads = (words for kind, _ in KINDS for words in kind.values())
    for known in (*workloads, *(rate for rate, _ in RATES), AVERAGED):
        text = re.sub(rf"(?<![a-z])(?:{known})(?![a-z])", " ", text, flags=re.IGNORECASE)
    for pattern in (LATENCY, PERCENTILE, LEVEL, SIZES):
        text = pattern.sub(" ", text)
    own = GENERIC.sub(" ", text)
    if not re.search(r"[^\W\d_]", own) and not PRODUCT.search(own):
        return ""
    words = text.split()
    naming = [n for n, word in enumerate(words) if re.search(r"[^\W_]", GENERIC.sub("", word))]
    words = words[naming[0] : naming[-1] + 1] if naming else []
    label = " ".join(words).strip(" :：-/()（）[]_,，.;|")
    label += {"(": ")", "（": "）"}.get("".join(re.findall("[()（）]", label)), "")
    return label if len(label) <= LABEL_MAX and len(words) <= WORDS_MAX else ""


def system_in(captions: Sequence[str], products: Collection[str]) -> str:
    """The system that captions name: the innermost label, or a product if the page has several."""
    labels = labels_in(captions)
    several = len(products) > 1
    return next((label for label in labels if several and label in products), "") or next(
        iter(labels), ""
    )


@dataclass(frozen=True)
class PageWords:
    """Words above all tables of a page, which explain each of them.

    Attributes:
        products: labels with the name of a product or a version.
        pools_gb: sizes of the buffer pool.
    """

    products: frozenset[str] = frozenset()
    pools_gb: frozenset[str] = frozenset()

    @classmethod
    def of(cls, captions: Sequence[Sequence[str]]) -> Self:
        """The words of the captions of all tables."""
        words = [caption[-HEADING_MAX:] for above in captions for caption in above]
        return cls(
            frozenset(label for label in labels_in(words) if PRODUCT.search(label)),
            frozenset(size for caption in words if (size := _pool_in(caption))),
        )

    def is_pool(self, size_gb: str, captions: Sequence[str]) -> bool:
        """Recognises a size of the buffer pool, by the captions of a table or of any."""
        is_said = any(BUFFER_POOL_WORDS.search(caption[-HEADING_MAX:]) for caption in captions)
        return is_said or size_gb in self.pools_gb

    def pool_alone(self, caption: str, captions: Sequence[str]) -> str:
        """The size of the buffer pool in a caption that has no other words; empty for others."""
        size = size_gb_of(_without_number(caption))
        return size if size and self.is_pool(size, captions) else ""

    def without_pool(self, name: str, captions: Sequence[str]) -> tuple[str, dict[str, str]]:
        """A system's name, and the size of the buffer pool in brackets behind it."""
        match = SIZED.fullmatch(name) if len(name) <= HEADING_MAX else None
        if match and self.is_pool(match[2], captions):
            return match[1], {BUFFER_POOL: match[2]}
        return name, {}


NO_WORDS: Final = PageWords()
