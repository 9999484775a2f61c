"""What a sentence of a publication says of its tables: who, against whom, where, how much.

English and Chinese. Only what is plain is read: a sentence that denies, that has a condition which
no cell can be matched with, or that says "more" and "less" at once has no direction, and is then
held against nothing. Better unread than read wrongly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple

from dbdyno.audit.publication import LATENCY, MEAN, QPS, TPS, PublishedCell

AMOUNT: Final = r"(?=\s+(?:than|[tq]ps|throughput|transactions|queries|requests|events|latency)\b)"
"""More of it, or less: not more stable, more features, less memory."""
MORE: Final = (
    rf"\b(?:above|higher|more{AMOUNT}|exceed(?:s|ed(?!\s+by))?|increase[sd]?)\b"
    r"|高于|超过|更高|高出|增加|增长|多于"
)
GOOD: Final = (
    r"\b(?:faster|better|ahead|outperform(?:s|ed(?!\s+by)|ing)?|beats?|wins|improve(?:s|d|ments?)?"
    r"|gains?|superior)\b|优于|快于|更快|领先|强于|好于|提升|提高|改善|快了|快约"
)
LESS: Final = (
    rf"\b(?:below|lower|(?:less|fewer){AMOUNT}|exceeded by|reduce[sd]?|reduction|decrease[sd]?)\b"
    r"|低于|更低|降低|下降|减少|少于"
)
BAD: Final = (
    r"\b(?:slower|worse|behind|loses|inferior|degrad(?:es|ed|ation)|(?:outperformed|beaten) by)\b"
    r"|不如|落后|慢于|更慢|弱于|差于|损失|慢了|慢约"
)
STEADINESS: Final = re.compile(
    r"\b(?:stable|stability|jitters?|fluctuat\w*|varian?ce|variation|variability|consisten(?:t|cy)"
    r"|predictab\w*|scal(?:es|able|ability))\b|稳定|抖动|波动|扩展性",
    re.IGNORECASE,
)
"""What no single number of a cell tells."""
RESOURCE: Final = re.compile(
    r"(?<![a-z])(?:cpu|memory|ram|disks?|storage|space|i/?o|iops|bandwidth|costs?|prices?|cheaper"
    r"|energy|errors?|deadlocks?|lag|compress\w*)(?![a-z])"
    r"|内存|磁盘|空间|带宽|资源|成本|价格|能耗|错误|死锁|压缩",
    re.IGNORECASE,
)
LATENCY_WORD: Final = (
    r"(?:latenc(?:y|ies)|response times?|(?<![a-z])(?:lat|rt)(?![a-z])|延迟|时延|响应时间|耗时)"
)
OF_SPEED: Final = re.compile(
    r"(?<![a-z])(?:faster|slower|outperform\w*|throughput|[tq]ps|transactions?|queries)(?![a-z])"
    rf"|快|慢|吞吐|每秒|{LATENCY_WORD}",
    re.IGNORECASE,
)
"""Beside a resource: then it is the machine's, and the sentence speaks of speed all the same."""
NEEDS_ANOTHER: Final = re.compile(
    r"\b(?:higher|lower|faster|slower|better|worse|outperforms?|improve[sd]?|superior|inferior"
    r"|gains?)\b|优于|领先|提升|提高|更快|更慢|更高|更低",
    re.IGNORECASE,
)
"""Words that compare with somebody, also where the sentence names nobody else."""
ALONG_LOAD: Final = re.compile(
    r"\b(?:as|with|when)\b[^,.;]*\b(?:increas|grow|ris|more (?:threads|connections))"
    r"|随着|(?:threads|connections|concurrency) (?:increase|grow|rise)|前后|从\s*\d+.*到\s*\d+",
    re.IGNORECASE,
)
DENIES: Final = re.compile(
    r"\b(?:not|no longer|nor|neither|hardly|cannot|without|except|unless|but|however|although"
    r"|though|while|whereas)\b|n't\b|不(?!管|论|同|如|足)|没有|并非|未|除了|但|然而|虽然|被",
    re.IGNORECASE,
)
CONDITION: Final = re.compile(
    r"\b(?:when|if|once|until|where)\b"
    r"|\b(?:with|under|for|in|at) (?:an? |the )?(?:small|large|low|high|light|heavy|sufficient"
    r"|insufficient|more|few|fewer|big)"
    r"|当|如果|时[，,]|情况下|条件下|之后|以后",
    re.IGNORECASE,
)
ALWAYS: Final = re.compile(
    r"\b(?:always|never|whether|no matter|regardless|every|all|any|each|throughout)\b"
    r"|始终|总是|无论|不管|不论|任何|全部|所有|(?<!平)均(?![匀衡值])|都",
    re.IGNORECASE,
)
MOSTLY: Final = re.compile(
    r"\b(?:most(?:ly)?|generally|usually|often|typically|majority)\b|多数|大多|一般|通常|基本",
    re.IGNORECASE,
)
AVERAGE: Final = re.compile(
    rf"\b(?:averag\w*|mean)\b(?!\s+{LATENCY_WORD})|\b(?:overall|total)\b"
    rf"|平均(?!{LATENCY_WORD})|总体|整体",
    re.IGNORECASE,
)
"""Not where it names the metric: mean latency."""
SOMEWHERE: Final = re.compile(
    r"\b(?:up to|at best|at most|as much as|highest|maximum|max|peaks?|can be|some|sometimes)\b"
    r"|最高|最大|最多|峰值|有时|部分",
    re.IGNORECASE,
)
FAR: Final = re.compile(
    r"\b(?:far|much|significantly|greatly|substantially|hugely|dramatically)\b|远(?!程)|大幅|显著|明显",
    re.IGNORECASE,
)
ABOUT: Final = r"\b(?:about|around|nearly|almost|roughly|approximately|some)\b|~|≈|约|近|大概|左右"
ABOUT_SHARE: Final = 0.05
"""What "about" allows of a ratio."""
BEYOND: Final = (
    r"\b(?:over|above|more than|at least|beyond|exceed(?:s|ing)?|greater than)\b"
    r"|超过|至少|大于|高于|以上"
)
WITHIN: Final = r"\b(?:under|below|fewer than|less than|up to)\b|小于|低于|不足|少于"
BEFORE_OTHER: Final = re.compile(
    r"(?:\bthan|\bcompar(?:ed|ison) (?:with|to)|\bagainst|\bover|\bversus|\bvs\.?|\brelative to"
    r"|\bbehind|(?:outperformed|beaten|exceeded) by|相比于?|相对于?|对比|比|较|于)\s*$",
    re.IGNORECASE,
)
"""What stands before the system that another is held against."""
AROUND_OTHER: Final = tuple(
    (re.compile(rf"(?:{before})\s*$", re.IGNORECASE), re.compile(after, re.IGNORECASE))
    for before, after in (
        ("与|和|跟|同", r"[^，,；;。]{0,12}(?:相比|对比|比较|相较)"),
        (r"\bfrom|从|由", r"[^，,；;。]{0,20}(?:\bto\b|到|至)"),
    )
)
"""What stands before and behind it: 与 A 相比, from A to B."""
BOTH: Final = re.compile(
    r"(?:\s*v?\d[\d.-]*)?\s*,?\s*(?:\band|\bor|&|以及|和|与|跟|及|或|、)(?:\s+the)?\s*",
    re.IGNORECASE,
)
"""Between two systems of which a sentence says the same."""
BESIDE: Final = re.compile(r"[^，,；;。]{0,12}(?:相比|对比|比较|相较)")
WORKLOADS: Final = {
    "update_non_index": r"(?:update[ _-])?non[ _-]?index(?:ed)?|非索引更新",
    "update_index": r"update[ _-]index|索引更新",
    "point_select": r"point[ _-]selects?|点查",
    "read_write": r"read[ _/-](?:and )?write|读写|混合",
    "read_only": r"read[ _-]only|只读",
    "write_only": r"write[ _-]only|只写|纯写",
    "insert": r"\binserts?\b|插入",
    "select": r"(?<!point[ _-])\bselects?\b|纯读|读(?:性能|测试|场景)",
    "update": r"(?<![ _-])\bupdates?\b(?![ _-](?:non|index))|(?<!索引)更新",
}
LEVEL: Final = r"\d+(?:\s*(?:,|and|or|to|-|–|、|/|至|到|和|~)\s*\d+)*"
LEVEL_UNIT: Final = r"(?:threads?|connections?|clients?|users|concurren\w*|个?并发|个?线程|个?连接)"
LEVELS: Final = re.compile(
    rf"(?P<bound>{BEYOND}|{WITHIN})?\s*(?P<levels>{LEVEL})\s*{LEVEL_UNIT}(?:数|用户)?(?P<end>以上|以下)?"
    rf"|{LEVEL_UNIT}(?:数量?| count)?\s*(?:is|of|=|:|：|为|是|达到|reach(?:es|ed))?\s*"
    rf"(?P<bound2>{BEYOND}|{WITHIN})?\s*(?P<levels2>{LEVEL})(?P<end2>以上|以下)?",
    re.IGNORECASE,
)
OF_LATENCY: Final = re.compile(rf"{LATENCY_WORD}|percentile|分位", re.IGNORECASE)
PERCENTILE: Final = re.compile(
    r"(?<![\d.])(95|99(?:\.9)?)\s*(?:th|%|％|分位|线)|\bp(999?|95)\b", re.IGNORECASE
)
UNIT: Final = r"(?:%|％|percent|x\b|×|times|倍)"
SHARE: Final = re.compile(
    rf"(?P<before>(?:{BEYOND}|{ABOUT}|up to|最高|at most)?\s*(?:by |达|了)?\s*)"
    rf"(?:(?P<first>\d+(?:\.\d+)?)\s*{UNIT}?\s*(?:-|–|—|~|～|to|到|至|and)\s*)?"
    r"(?P<number>\d+(?:\.\d+)?)\s*(?:(?P<percent>%|％|percent)|(?P<times>x\b|×|times|倍))"
    r"(?P<after>\s*(?:以上|左右)?\s*(?:of|的)?)",
    re.IGNORECASE,
)
"""One share, or the two ends of a range: "20-30 %"."""
IN_WORDS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), said)
    for pattern, said in (
        (
            r"(?<![\d/.])1\s?/\s?([2-5])(?![\d/.])|(?:one|a)[- ](half|third|quarter|fifth)\b",
            "{0:.1f}%",
        ),
        (r"([二三四五])分之一", "{0:.1f}%"),
        (r"(?<![\d/.])2\s?/\s?(3)(?![\d/.])|two[- ](thirds)\b|(三)分之二", "{1:.1f}%"),
        (r"\b(?:only )?half (?:of|as|the)\b|一半", "50% of "),
        (r"\btwice\b", "2x "),
        (r"(?<![十百千])两倍", "2倍"),
        (r"(?<![十百千])一倍", "1倍"),
    )
)
"""Shares that are written as words; they are taken for about so much."""
MULTIPLIES: Final = re.compile(
    r"\s*(?:as|that|the|more|less|fewer|higher|lower|faster|slower|better|worse|greater|larger)\b",
    re.IGNORECASE,
)
"""Behind "3 times" that are a ratio; tests are run three times, too."""
PARTS: Final = {
    **{"2": 2, "3": 3, "4": 4, "5": 5, "二": 2, "三": 3, "四": 4, "五": 5},
    **{"half": 2, "third": 3, "quarter": 4, "fifth": 5, "thirds": 3},
}


class Extent(Enum):
    """Of how many of its cells a sentence speaks."""

    PLAIN = "plain"
    ALWAYS = "always"
    MOSTLY = "mostly"
    AVERAGE = "average"
    SOMEWHERE = "somewhere"


class SaidRatio(NamedTuple):
    """A ratio of the subject to the other, as a sentence names it.

    Attributes:
        text: how it stands there.
        low, high: between which it lies with rounding; one of them unbounded for "over 30 %".
        is_range: every cell lies between them.
    """

    text: str
    low: float
    high: float
    is_range: bool = False


class Meaning(NamedTuple):
    """What a sentence says.

    Attributes:
        subject, other: the systems; empty where the sentence leaves them open.
        direction: 1 if the subject's value is the larger one, -1 if the smaller, 0 if not told.
        metrics: that it may speak of, the likeliest first.
        conditional: it has a condition that could not be matched with cells.
    """

    subject: str
    other: str
    direction: int
    metrics: tuple[str, ...]
    extent: Extent
    far: bool
    conditional: bool
    cells: tuple[PublishedCell, ...]
    ratios: tuple[SaidRatio, ...]


def meaning(
    text: str, labels: Iterable[str], cells: Sequence[PublishedCell], named: Sequence[str] = ()
) -> Meaning:
    """What a sentence says of the cells.

    Args:
        labels: of all systems.
        named: the subject, then the other, where that is known.
    """
    every, text = list(labels), _in_numbers(text)
    subject, other = named[:2] if len(named) > 1 else _systems(text, every)
    rest, scoped, kept = _scope(text, cells)
    metrics = _metrics(rest)
    of_latency = metrics[0].startswith(LATENCY)
    rest, shares = _shares(rest)
    direction = _direction(rest, of_latency=of_latency)
    extent = _extent(text)
    denied = DENIES.search(re.sub("whether or not|无论|不论", " ", rest, flags=re.I)) is not None
    unread = denied or STEADINESS.search(rest) is not None or _is_of_resource(rest)
    return Meaning(
        subject=subject,
        other=other,
        direction=0 if unread else direction,
        metrics=metrics,
        extent=extent,
        far=FAR.search(text) is not None,
        conditional=extent is not Extent.ALWAYS
        and not scoped
        and CONDITION.search(rest) is not None,
        cells=tuple(kept),
        ratios=tuple(r for one in shares if (r := _ratio(one, direction)) and not unread),
    )


def _is_of_resource(text: str) -> bool:
    """Whether words speak of what a system takes, and of no speed."""
    return RESOURCE.search(text) is not None and OF_SPEED.search(text) is None


def _in_numbers(text: str) -> str:
    """The text with shares that are written as words in numbers."""
    for pattern, said in IN_WORDS:

        def number(match: re.Match[str], said: str = said) -> str:
            parts = PARTS[next(filter(None, match.groups())).lower()] if match.groups() else 2
            return " about " + said.format(100 / parts, 200 / parts)

        text = pattern.sub(number, text)
    return text


def mentioned(text: str, labels: Iterable[str]) -> list[tuple[int, str]]:
    """Where which systems are named; of labels within each other the longer one."""
    found: list[tuple[int, str]] = []
    for label in sorted(set(labels), key=len, reverse=True):
        pattern = rf"(?<![A-Za-z0-9_.-]){re.escape(label)}(?![A-Za-z0-9_]|[.-]\w)"
        if label and (match := re.search(pattern, text, re.IGNORECASE)):
            found.append((match.start(), label))
            text = re.sub(pattern, " " * len(label), text, flags=re.IGNORECASE)
    return sorted(found)


def _systems(text: str, labels: Sequence[str]) -> tuple[str, str]:
    """The subject and the other; the other may be the only one left."""
    found = mentioned(text, labels)
    if len(found) == 1 and len(set(labels)) == 2:
        alone = found[0][1]
        if NEEDS_ANOTHER.search(text) and not ALONG_LOAD.search(text):
            return alone, next(label for label in labels if label != alone)
    if len(found) != 2:
        return "", ""
    (at, first), (next_at, second) = found
    behind, rest = text[at + len(first) : next_at], text[next_at + len(second) :]
    if BOTH.fullmatch(behind) and not BESIDE.match(rest):
        return "", ""
    if BEFORE_OTHER.search(text[:at]) or any(
        before.search(text[:at]) and after.match(behind) for before, after in AROUND_OTHER
    ):
        return second, first
    return first, second


def _scope(text: str, cells: Sequence[PublishedCell]) -> tuple[str, bool, list[PublishedCell]]:
    """The sentence without the words that say where, whether there were any, and the cells."""
    kept, scoped = list(cells), False
    for match in LEVELS.finditer(text):
        part = match.groupdict()
        numbers = re.findall(
            r"\d+|to|-|–|至|到|~", part["levels"] or part["levels2"], re.IGNORECASE
        )
        bound = part["bound"] or part["bound2"] or part["end"] or part["end2"] or ""
        kept = [cell for cell in kept if _is_level(cell.threads, numbers, bound)]
        text, scoped = _blank(text, match), True
    known = "".join(cell.workload for cell in cells)
    workloads = []
    for fragment, pattern in WORKLOADS.items():
        if found := re.search(pattern, text, re.IGNORECASE):
            workloads.append(fragment)
            text = _blank(text, found)
    if workloads and any(fragment in known for fragment in WORKLOADS):
        scoped = True
        kept = [cell for cell in kept if any(one in cell.workload for one in workloads)]
    for axis in dict.fromkeys(name for cell in cells for name in cell.at):
        values = dict.fromkeys(cell.at.get(axis, "") for cell in cells)
        chosen = {value: found for value in values if (found := _axis_value(value, axis, text))}
        if chosen:
            scoped = True
            kept = [cell for cell in kept if cell.at.get(axis, "") in chosen]
            for found in chosen.values():
                text = _blank(text, found)
    return text, scoped, kept


def _is_level(threads: int, numbers: Sequence[str], bound: str) -> bool:
    """Whether a load level is one of those that are named, between two, or beyond one."""
    levels = [int(one) for one in numbers if one.isdigit()]
    if bound.lower() == "under":
        return False  # with so many, or with fewer
    if re.search(f"{WITHIN}|以下", bound, re.IGNORECASE):
        return threads < levels[0] or (threads == levels[0] and bound.lower() == "up to")
    if bound:
        least = re.search("at least|至少|以上", bound, re.IGNORECASE)
        return threads > levels[0] or (threads == levels[0] and least is not None)
    if len(numbers) == 3 and not numbers[1].isdigit():
        return levels[0] <= threads <= levels[1]
    return threads in levels


def _axis_value(value: str, axis: str, text: str) -> re.Match[str] | None:
    """Where an axis's value stands: a bare number needs its unit or its axis beside it."""
    digits = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", value)
    if digits is None:
        return (
            re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.I) if len(value) > 2 else None
        )
    words = "|".join(re.escape(one) for one in axis.split("_") if len(one) > 2)
    unit = r"\s*(?:G(?:i?B)?|M(?:i?B)?|T(?:i?B)?)(?![A-Za-z])"
    number = rf"(?<![\d.]){re.escape(digits[1])}"
    found = re.search(number + unit, text, re.IGNORECASE)
    if found is None and words:
        found = re.search(rf"(?:{words})\D{{0,12}}{number}(?![\d.%])", text, re.IGNORECASE)
    return found


def _blank(text: str, match: re.Match[str]) -> str:
    return text[: match.start()] + " " * len(match[0]) + text[match.end() :]


def _metrics(text: str) -> tuple[str, ...]:
    """What the sentence is about: throughput unless it names something else."""
    if OF_LATENCY.search(text):
        if named := PERCENTILE.search(text):
            return (f"{LATENCY}p{(named[1] or named[2]).replace('.', '')}",)
        return MEAN, f"{LATENCY}p95", f"{LATENCY}p99"
    if re.search(r"\bqps\b|queries per second|每秒查询", text, re.IGNORECASE):
        return (QPS,)
    if re.search(r"\btps\b|transactions per second|每秒事务", text, re.IGNORECASE):
        return (TPS,)
    return TPS, QPS


def _direction(text: str, *, of_latency: bool) -> int:
    """1, -1, or 0; "better" is more throughput, and less latency."""
    good = -1 if of_latency else 1
    signs = {
        sign
        for pattern, sign in ((MORE, 1), (GOOD, good), (LESS, -1), (BAD, -good))
        if re.search(pattern, text, re.IGNORECASE)
    }
    return signs.pop() if len(signs) == 1 else 0


def _extent(text: str) -> Extent:
    for pattern, extent in (
        (ALWAYS, Extent.ALWAYS),
        (MOSTLY, Extent.MOSTLY),
        (AVERAGE, Extent.AVERAGE),
        (SOMEWHERE, Extent.SOMEWHERE),
    ):
        if pattern.search(text):
            return extent
    return Extent.PLAIN


def _shares(text: str) -> tuple[str, list[re.Match[str]]]:
    """The percentages and multiples, and the sentence without them and their bounds."""
    found = [
        match
        for match in SHARE.finditer(text)
        # "99 % latency" is a percentile, no share
        if not OF_LATENCY.match(text[match.end() :].lstrip())
        and not _is_of_resource(_clause(match))
    ]
    for match in found:
        text = _blank(text, match)
    return text, found


def _clause(match: re.Match[str]) -> str:
    """The words between commas in which something stands."""
    text = match.string
    return (
        re.split("[,，;；。]", text[: match.start()])[-1]
        + re.split("[,，;；。]", text[match.start() :], maxsplit=1)[0]
    )


def _is_multiple(match: re.Match[str], direction: int) -> bool:
    """Whether "3 times" and "4 x" multiply: tests are run 3 times, machines have 4 x 8 cores."""
    behind = match.string[match.end() :]
    if match["times"] == "倍" or match["after"].strip() or MULTIPLIES.match(behind):
        return True
    return match["times"].lower() != "times" and direction != 0 and not behind[:1].isdigit()


def _ratio(match: re.Match[str], direction: int) -> SaidRatio | None:
    """A share as a ratio of subject to other; None if it may mean several things."""
    ends = [end for end in (match["first"], match["number"]) if end]
    half = 0.5 * 10.0 ** -max(len(end.partition(".")[2]) for end in ends)
    is_of = re.search(r"of$|的$", match["after"]) is not None
    values = [float(end) for end in ends]
    if match["percent"]:
        if not is_of and direction == 0:
            return None
        values = [value / 100 if is_of else 1 + direction * value / 100 for value in values]
        half /= 100
    if min(values) <= 0 or (match["times"] and not _is_multiple(match, direction)):
        return None
    if re.search(ABOUT, match[0], re.IGNORECASE):
        half = max(half, ABOUT_SHARE * max(values))
    low, high = min(values) - half, max(values) + half
    if match["times"] and direction:
        if match["times"] == "倍":  # 高 2 倍 is twice or three times as much, 高 1 倍 is twice
            low, high = (low + 1 if min(values) <= 1 else low), high + 1
        low, high = (low, high) if direction > 0 else (1 / high, 1 / max(low, 1e-9))
    if len(values) > 1:
        return SaidRatio(match[0].strip(), low, high, is_range=True)
    if re.search(BEYOND, match[0], re.IGNORECASE):
        further_down = direction < 0 and not is_of
        low, high = (0.0, high) if further_down else (low, float("inf"))
    return SaidRatio(match[0].strip(), low, high)
