"""Meaning of a published table's columns, in English and Chinese, and their numbers.

A heading is a load level, a metric, a system, or a system with a metric ("v2.1 QPS"), a condition
such as the number of warehouses, or a column that no rule uses ("CPU", "notes"). A small mapping
adds the rest (the metric of columns that name systems only, the workload)::

    columns: {并发: threads, "A 库": {system: A, metric: tps}}
    metric: tps
    workload: oltp_read_write
    decimal: ","
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator

from dbdyno.audit.tables import MEAN, NOPM, QPS, TPS, Printed, quantile_of
from dbdyno.errors import UsageError
from dbdyno.measurement.parts import FiniteNoun

THREADS: Final = "threads"
SYSTEM: Final = "system"
WORKLOAD: Final = "workload"
BUFFER_POOL: Final = "buffer_pool_gb"
CHANGE: Final = "change"
OTHER: Final = "other"
CONDITION: Final = "condition"
LEVEL_UNIT: Final = (
    r"(?:threads?|thds?|connections?|conns?|clients?|(?:virtual )?users?|v?users?|vus?|terminals"
    r"|sessions|concurren\w*|个?并发(?:数|线程|用户)?|个?线程|个?连接|个?用户)"
)
NOTED: Final = r"(?:\s*[(（].*[)）])?"
"""A remark behind a name, such as a unit."""
ROLES: Final = {
    THREADS: r"(?:(?:#\s*(?:of\s+)?|(?:number|no\.?|count)\s*(?:of\s+)?)?"
    r"(?:(?:sysbench|pgbench|hammerdb|concurrent|client|active|worker|parallel|virtual|db|user"
    r"|load)[ _-]*){0,3}"
    r"(?:threads?|thds?|concurrency|connections?|conns?|clients?|users?|vusers?|vus?|terminals?"
    r"|sessions?|workers?|max(?:imum)? connections(?= ?[(（](?:in )?stress))"
    r"(?:[ _-]*(?:count|number|num|level))?"
    r"|(?:sysbench|压测|测试|客户端)?\s*(?:并发|併發|线程|線程|虚拟用户|用户|连接|会话|终端)"
    rf"(?:线程|用户|连接)?\s*(?:数量|数|數|量|度|级别)?|スレッド数?|同時(?:実行|接続)数){NOTED}",
    SYSTEM: r"systems?|databases?|dbms|db|products?|servers?|engines?|branch|release|build"
    r"|variants?|config(?:uration)?s?|set-?up|cluster|environment|storage engine"
    r"|(?:(?:mysql|postgres(?:ql)?|tidb|db|database|server|product) )?version"
    r"|(?:db|database|server) type"
    r"|数据库(?:版本|类型)?|产品(?:名称)?|版本号?|系统|集群|配置|方案|(?:存储)?引擎",
    WORKLOAD: r"workloads?|(?:sysbench )?tests?(?: (?:name|type|case))?|scenarios?|benchmarks?"
    r"|scripts?|cases?|kind|operations?|transaction type"
    r"|(?:测试|压测|业务)?(?:场景|用例|项目?|脚本|模型|类型)(?:名称?)?"
    r"|測試(?:場景|項目)?|類型|工作負載|测试|负载(?:类型)?|操作(?:类型)?",
    CHANGE: r"(?=.{1,30}$)[^。，,;；!！?？]*"
    r"(?:(?<![a-z])(?:improve(?:d|ment)?|gain|change|diff(?:erence)?|delta|ratio|speed-?up|increase"
    r"|vs|relative)(?![a-z])|Δ|^\s*%\s*$|^\s*\+/-\s*%?\s*$|提升|增幅|涨幅|降幅|降低|下降"
    r"|变化|差异|差異|差距|增长|向上|比例|对比|占比|相[对對])[^。，,;；!！?？]*",
    BUFFER_POOL: r"(?:innodb[ _])?buffer[ _]pool(?:[ _]size)?(?:[ _]gb)?"
    r"(?:\s*[(（]G(?:i?B)?[)）])?",
    "warehouses": rf"(?:(?:number of |#\s*)?warehouses?|wh|仓库?数量?){NOTED}",
    "tables": r"(?:(?:number of |#\s*)?tables?(?:[ _]?(?:count|number))?"
    rf"|(?:总|数据)?表(?:数量?|总数量?)){NOTED}",
    "rows": r"(?:(?:table|data(?:set)?|data base)[ _-]?size|rows?(?: per table| count)?"
    rf"|scale(?: factor)?|(?:单表)?(?:数据量|行数|记录数)|表大小|数据规模){NOTED}",
    "cpus": rf"(?:(?:v?cpus|v?cores|vcpu)|(?:CPU)?核数){NOTED}",
    "instance": r"sku|(?:instance|node|machine|ec2)[ _]?(?:type|spec\w*|class|size)|flavor"
    r"|(?:实例|节点|配置)?规格(?:代码|类型)?|机型",
    "protocol": r"protocol|query mode",
}
"""Roles of columns without numbers to compare, and their headings; from `BUFFER_POOL` on they are
conditions of a row."""
CONDITIONS: Final = tuple(ROLES)[tuple(ROLES).index(BUFFER_POOL) :]
SETTING_NAME: Final = re.compile(
    r"(?:innodb|binlog|sync|max|tidb|wal|query|table|read|join|sort|tmp|thread)_[a-z_]+"
    r"|shared_buffers|synchronous_commit|work_mem|autocommit"
)
"""A heading that is the name of a setting, a condition too."""
UNUSED: Final = re.compile(
    r"(?:(?:(?:avg|average|mean|max|peak|total|server|client|db|database|mysql|sysbench|host|user"
    r"|sys)\.?[ _]*){0,3}(?:cpu|memory|mem|ram|disk|io|i/o|iops|bandwidth|iowait"
    r"|max[_ ]connections)(?:[ _]*(?:usage|use|util\w*|load|time|used|%|cores?)){0,2}"
    r"|(?:ignored |total )?(?:errors?|reconnects?|failures?|retries|deadlocks?)"
    r"(?:\s*(?:/s|/sec|rate|per sec\w*|count))?"
    r"|(?:failed|retried|total)(?:[ _/]*(?:queries|transactions|events|requests|time|reads?"
    r"|writes?|failed|retried))?"
    r"|events|queries|transactions|lock waits?|notes?|comments?|remarks?|status|success(?: rate)?"
    r"|date|timestamp|seed|id|efficiency|costs?|prices?|jobs|ops|attempts|#|no\.?"
    r"|(?:run|elapsed|test|wall)?[ -]?(?:time|duration)|(?:build|load|elapsed)(?: time| s)?|ci ?\d*"
    r"|备注|说明|错误[数率]?|失败[数率]?|重试数?|成功率|最大连接数"
    r"|总(?:事务|查询|请求|时|耗)[数间时]?|(?:执行|测试|压测|运行)?(?:时间|时长)"
    r"|(?:CPU|内存|磁盘|IO)\s*(?:使用率|利用率|占用率?|负载|用户|系统|等待|空闲)?"
    rf"|序号|编号){NOTED}",
    re.IGNORECASE,
)
"""Headings of columns that no rule uses and no run holds."""
REPEATS: Final = re.compile(
    r"(?:#\s*)?(?:runs?|rounds?|iterations?|repeats?|trials?)|轮次|次数", re.IGNORECASE
)
"""Headings of a column that numbers repeats; one of words names what was measured."""
SHARES: Final = re.compile(
    r"(?:/|\bper)\s*(?:v?cpu|core|thread|vu|user|connection|client|node|gpu|dollar|watt)s?$",
    re.IGNORECASE,
)
"""A heading of numbers divided by another column's."""
HEADING_MAX: Final = 400
"""Signs of a heading; longer ones would take patterns long."""
SPACES: Final = "\u00a0\u202f\u2009 _'"
PERCENTILE: Final = re.compile(
    r"(?<![a-z\d.])(?:t?p(?P<p>(?:50|75|80|85|9\d)(?:\.\d{1,3})?|999{1,2})(?!\d|\.\d)(?:th)?"
    r"|(?P<share>(?:50|75|80|85|9\d)(?:\.\d{1,3})?)\s*-?\s*"
    r"(?:(?:%|％)(?:\s*(?:t?ile|分位[数值点]?|线))?"
    r"|(?:th|pct|percentile|percent)(?![a-z])|分位[数值点]?|线(?!程))"
    r"(?:[\s-]*(?:percentile|pctl?)(?![a-z]))?)",
    re.IGNORECASE,
)
AVERAGED: Final = (
    r"(?:(?<![a-z])(?:avg\.?|average|mean|m[ée]dia|moyenne|promedio)(?![a-z])|平均|均值)"
)
PER_SECOND: Final = (
    r"[\s_]*(?:[(（][\s_]*)?"
    r"(?:[1p]?/\s*s(?:ec(?:ond)?)?|per[\s_]*s(?:ec(?:ond)?)?\.?|[/／]\s*秒)(?![a-z])\s*[)）]?"
)
RATES: Final[tuple[tuple[str, str], ...]] = (
    (r"tpm-?c|nopm|new[ -]?orders?\s*(?:/\s*min(?:ute)?|per\s*min(?:ute)?)", NOPM),
    (
        r"tpm(?:total)?|transactions?\s*(?:/\s*min(?:ute)?|per\s*min(?:ute)?)|每分钟事务数?",
        "tpm",
    ),
    (rf"tps|(?:transactions?|txns?|trxs?|trns|trans|事务数?){PER_SECOND}|每秒事务数?", TPS),
    (rf"qps|(?:quer(?:y|ies)|statements?|查询数?){PER_SECOND}|每秒查询[数率]?", QPS),
    (
        rf"(?:ops|operations?|events?|req(?:uest)?s?|请求数?|操作数?){PER_SECOND}"
        r"|(?-i:OPS)|rps|eps|每秒(?:操作|请求)数?",
        TPS,
    ),
)
"""Rates of a heading, the plainest first; an operation of another tool is its transaction."""
RATE_METRICS: Final = frozenset(metric for _, metric in RATES)
BOTH_RATES: Final = re.compile(
    r"(?<![a-z])(?:tps\s*/\s*qps|qps\s*/\s*tps|(?:r/w|read\s*/\s*write)\s*req(?:uest)?s?)(?![a-z])",
    re.IGNORECASE,
)
"""A heading of numbers that are transactions or queries, or reads and writes."""
TRANSACTION: Final = re.compile(
    r"payment|order[ _-]?status|delivery|stock[ _-]?level", re.IGNORECASE
)
"""A transaction of TPC-C beside the new orders, whose latency is no latency of the test."""
NOISE: Final = re.compile(
    r"(?<![a-z\d])(?:throughput|rate|transactions?|quer(?:y|ies)|txns?|trans|requests?|sysbench"
    r"|results?|values?|percentile|median|new[ _-]?orders?|without initial connection time"
    r"|(?:ex|in)cluding(?: connections?(?: establishing)?)?)(?![a-z\d])|吞吐量?|性能|数值",
    re.IGNORECASE,
)
"""Words beside a metric that name no system."""
KINDS: Final[tuple[tuple[str, str], ...]] = (
    (r"max(?:imum)?|最大|最高|最长", "latency_ms_max"),
    (r"min(?:imum)?|最小|最低|最短", "latency_ms_min"),
    (r"std\.?[ _]?dev(?:iation)?|stdev|标准差", "stddev"),
    (r"median|中位数?", "latency_ms_p50"),
)
"""Statistics of a latency heading; the mean without any."""
BARE_KINDS: Final = tuple((rf"^\s*(?:{words})\s*$", metric) for words, metric in KINDS)
"""Without further words, as beside "avg"."""
RATE_KINDS: Final[tuple[tuple[str, str], ...]] = (
    (r"max(?:imum)?|peak|best|最大|最高|峰值", "max"),
    (r"min(?:imum)?|worst|最小|最低", "min"),
    (r"std\.?[ _]?dev(?:iation)?|stdev|variance|variation|cv|标准差", "stddev"),
)
"""Statistics of a rate, which no rule compares with means."""
MEANS: Final = ((r"avg\.?|average|mean", MEAN),)
OTHERS: Final[tuple[tuple[str, str], ...]] = (
    (r"读请求(?:数|/秒)?|reads(?:/s)?|read(?:/s| requests)|^\s*read\s*$", "reads"),
    (r"写请求(?:数|/秒)?|writes(?:/s)?|write(?:/s| requests)|^\s*write\s*$", "writes"),
)
LATENCY: Final = re.compile(
    r"(?:latenc(?:y|ies)|resp(?:onse)?\.? ?times?|(?<![a-z])(?:lat\.?|rt)(?![a-z])"
    r"|延迟|延遲|时延|延时|响应时间|响应时长|耗时|レイテンシー?|応答時間|lat[eê]ncia|latenza)",
    re.IGNORECASE,
)
RESOURCE: Final = re.compile(
    r"(?<![a-z])(?:cpu|memory|ram|disks?|storage|space|i/?o|iops|bandwidth|costs?|prices?|cheaper"
    r"|energy|errors?|deadlocks?|lag|compress\w*)(?![a-z])"
    r"|内存|磁盘|空间|带宽|资源|成本|价格|能耗|错误|死锁|压缩",
    re.IGNORECASE,
)
"""In a heading: an average of it is no latency."""
UNIT: Final = re.compile(
    r"[(（\[]\s*(ms|msec|毫秒|ミリ秒|s|sec|seconds|秒|us|µs|μs|微秒|k|千|万)\s*[)）\]]",
    re.IGNORECASE,
)
THOUSANDS: Final = re.compile(r"[(（\[]\s*(k|千|万)\s*[)）\]]", re.IGNORECASE)
BARE_UNIT: Final = re.compile(
    r"(?<![a-z\d])(ms|msec|毫秒|ミリ秒|us|µs|μs|微秒)(?![a-z])", re.IGNORECASE
)
RATE_UNIT: Final = re.compile(
    r"(?<=[\d.kK万])\s*"
    r"(tps|qps|ops|rps|nopm|tpmc?|(?:ops|reqs?|txn|queries|次)?/(?:s|sec|秒))$",
    re.IGNORECASE,
)
CELL_UNIT: Final = re.compile(r"(?<=[\d.])\s*(ms|毫秒|s|秒|us|µs|μs|微秒)$", re.IGNORECASE)
UNITS_MS: Final = {
    **{"ms": 1.0, "msec": 1.0, "毫秒": 1.0, "ミリ秒": 1.0},
    **{"s": 1e3, "sec": 1e3, "seconds": 1e3, "秒": 1e3},
    **{"us": 1e-3, "\u03bcs": 1e-3, "微秒": 1e-3},  # of both letters mu as `casefold` gives it
}
LEVEL: Final = re.compile(
    r"(?:(?:threads?|concurrency|connections?|clients?|vus?|线程数?|并发数?)\s*[=:：]?\s*|[ct]=)?"
    r"(?P<level>\d{1,9}|\d{1,3}(?:,\d{3}){1,2})(?:\s*[*×x]\s*(?P<times>\d{1,4}))?\s*"
    rf"(?:{LEVEL_UNIT}|th)?",
    re.IGNORECASE,
)
"""A load level, in a heading or a cell; "64 * 4" is of four load generators."""
SIZE: Final = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*G(?:i?B)?", re.IGNORECASE)
MISSING: Final = re.compile(
    r"[-\u2013\u2014/\\?.…\s*]*|n\.?/?a\.?|none|null|nan|oom|failed|failure|time-?out|error"
    r"|crash(?:ed)?|skipped|tbd|x|[✗✘×❌]|无|失败|超时|未测|[<>≤≥]\s*[\d.,]+\s*\w*",
    re.IGNORECASE,
)
REMARK: Final = re.compile(
    r"\s*(?:[(（][^()（）]*[)）]|(?:±|\+/-)\s*[\d.,]+\s*(?:%|ms)?|[*†‡✓✔✅↑↓▲▼]+)$"
)
"""A change, a spread or a mark behind a number."""
CELL_MAX: Final = 60
"""Signs of a cell with a load level, with a remark, or without a number."""


class TableColumn(FiniteNoun):
    """A column: one of `ROLES`, or a metric of a system.

    Attributes:
        system: also the name of a further condition, with `metric: condition`.
        ms: a latency's unit.
        is_mean_said: False for a latency that may be a mean or a percentile.
    """

    metric: str
    system: str = ""
    ms: float = 1.0
    is_mean_said: bool = True

    @property
    def condition(self) -> str:
        """Name of a condition of its rows; empty for other columns."""
        if self.metric == CONDITION:
            return self.system
        return self.metric if self.metric in CONDITIONS else ""

    @property
    def has_numbers(self) -> bool:
        """True for a metric."""
        return self.metric not in ROLES and self.metric not in (OTHER, CONDITION)


def _column(value: object) -> object:
    return {"metric": value} if isinstance(value, str) else value


class Mapping(FiniteNoun):
    """Hints of the reader of a page; all may be empty.

    Attributes:
        columns: by the heading's text.
        metric, system, workload: where the page does not say.
        systems: labels of systems, by their names in tables, logs and files' names.
        decimal: the sign before decimals; "," where commas are no thousands.
        at: further conditions of a whole table.
    """

    columns: dict[str, Annotated[TableColumn, BeforeValidator(_column)]] = {}
    metric: str = ""
    system: str = ""
    workload: str = ""
    systems: dict[str, str] = {}
    decimal: Literal[".", ","] = "."
    at: dict[str, str] = {}


NO_MAPPING: Final = Mapping()


def is_heading(text: str, mapping: Mapping = NO_MAPPING) -> bool:
    """Recognises the name of a column, or a load level or a size with its unit."""
    is_number = text.strip().replace(",", "").isdigit()
    is_level = not is_number and (level_of(text) is not None or size_gb_of(text) is not None)
    return is_level or column_of(text, mapping) is not None


def column_of(heading: str, mapping: Mapping) -> TableColumn | None:
    """Meaning of a heading; None if unknown, as for the name of a system alone."""
    text = heading.strip()
    if text in mapping.columns:
        return mapping.columns[text]
    if role := _role_of(text):
        return TableColumn(metric=role)
    if SHARES.search(text[-HEADING_MAX:]):
        return TableColumn(metric=OTHER)
    if column := metric_column(text, mapping):
        is_part = TRANSACTION.fullmatch(column.system)
        return TableColumn(metric=OTHER) if is_part else column
    if len(text) <= HEADING_MAX and UNUSED.fullmatch(text):
        return TableColumn(metric=OTHER)
    return TableColumn(metric=CONDITION, system=text) if SETTING_NAME.fullmatch(text) else None


def metric_column(text: str, mapping: Mapping) -> TableColumn | None:
    """The column of a metric, and of the system that stands beside it; None for other words."""
    named = metric_of(text)
    if named is None:
        return None
    metric, rest = named
    return TableColumn(
        metric=metric,
        system=rest or mapping.system,
        ms=_unit_ms(text, metric),
        is_mean_said=metric != MEAN or bool(re.search(AVERAGED, text, re.IGNORECASE)),
    )


def _unit_ms(text: str, metric: str) -> float:
    """A latency heading's unit in ms; 1 without a unit, and for other metrics."""
    unit = UNIT.search(text) or BARE_UNIT.search(text)
    if unit is None or not metric.startswith("latency"):
        return 1.0
    return UNITS_MS.get(unit[1].casefold(), 1.0)


def _role_of(text: str) -> str | None:
    """The role of a column; None for a metric or an unknown heading."""
    bare = text.strip()
    if len(bare) > HEADING_MAX:
        return None
    for part in dict.fromkeys((bare, *bare.split("\\", 1))):  # as in "threads \ system"
        for role, words in ROLES.items():
            if re.fullmatch(words, part.strip(), re.IGNORECASE):
                return role
    return None


def metric_of(text: str) -> tuple[str, str] | None:
    """The metric of a heading, and its other words."""
    if len(text) > HEADING_MAX or BOTH_RATES.search(text):
        return None
    bare = UNIT.sub("", re.sub(r"次\s*/\s*秒", "/秒", text))
    match = _percentile_of(bare) or _first_of(RATES, bare)
    if match is None and LATENCY.search(bare):
        match = _first_of(KINDS, bare) or (MEAN, bare)
    if match is None and not RESOURCE.search(bare):
        match = _first_of(OTHERS, bare) or _first_of(MEANS, bare) or _first_of(BARE_KINDS, bare)
    if match is None:
        return None
    metric, rest = match
    rest = NOISE.sub(" ", re.sub(AVERAGED, " ", rest, flags=re.IGNORECASE))
    if metric.startswith("latency") or metric == "stddev":
        rest = BARE_UNIT.sub(" ", LATENCY.sub(" ", rest))
    else:
        rest = re.sub(PER_SECOND, " ", rest, flags=re.IGNORECASE)
        if metric in RATE_METRICS and (kind := _first_of(RATE_KINDS, rest)):
            metric, rest = f"{metric}_{kind[0]}", kind[1]
    return metric, _bare(rest)


def _bare(words: str) -> str:
    """Words without signs around them; a bracket within them keeps its end."""
    text = " ".join(words.strip(" :-/()（）[]_,，").split())
    opened = sum(text.count(sign) for sign in "(（") - sum(text.count(sign) for sign in ")）")
    return f"{text})" if opened > 0 else text


def _percentile_of(bare: str) -> tuple[str, str] | None:
    match = PERCENTILE.search(bare)
    if match is None:
        return None
    is_plain = match["share"] in (None, "95", "99", "99.9", "99.99")
    if not is_plain and not LATENCY.search(bare):  # 50 % may be anything
        return None
    rest = f"{bare[: match.start()]} {bare[match.end() :]}"
    return quantile_of(match["p"] or match["share"]), rest


def _first_of(known: Sequence[tuple[str, str]], bare: str) -> tuple[str, str] | None:
    """The first metric of which a heading has the words, and its other words."""
    for pattern, metric in known:
        rest, times = re.subn(rf"(?<![a-z])(?:{pattern})(?![a-z])", " ", bare, flags=re.IGNORECASE)
        if times:
            return metric, rest
    return None


def level_of(text: str) -> int | None:
    """A load level: "64", "64 threads", "threads=64", "64 * 4"; None for anything else."""
    match = LEVEL.fullmatch(text.strip()) if len(text) <= CELL_MAX else None
    if match is None:
        return None
    return int(match["level"].replace(",", "")) * int(match["times"] or 1)


def size_gb_of(text: str) -> str | None:
    """A size of memory without its unit: of "48G" 48; None for anything else."""
    match = SIZE.fullmatch(text.strip()) if len(text) <= CELL_MAX else None
    return match[1] if match else None


def conditions_of(columns: Sequence[TableColumn], row: Sequence[str]) -> dict[str, str]:
    """Further conditions of a row, such as the size of the buffer pool."""
    cells = [(c.condition, text.strip()) for c, text in zip(columns, row, strict=True)]
    return {
        name: re.sub(r"\s*G(i?B)?$", "", text) if name == BUFFER_POOL else text
        for name, text in cells
        if name and text
    }


def is_missing(text: str) -> bool:
    """Recognises a cell without a number, or with a bound only."""
    return len(text) <= CELL_MAX and bool(MISSING.fullmatch(text.strip()))


def without_remark(text: str) -> str:
    """A cell without a change or a spread behind its number."""
    return REMARK.sub("", text.strip()) if len(text) <= CELL_MAX else text.strip()


def number_of(text: str, decimal: str, line: int, source: str) -> Printed:
    """Parse a printed number: "12,345.6", "12 345,6" with a decimal comma, "84.5%", "3.2万",
    "1.2 ms", "1511.2 (+25 %)", "1203.4 ± 12".

    Raises:
        UsageError: it is no number, or its comma is ambiguous; with its line.
    """
    bare = without_remark(text)
    for space in SPACES:
        bare = bare.replace(space, "")
    factor, dropped = 1, 0
    bare = RATE_UNIT.sub("", bare)
    if bare.endswith("万"):
        bare, factor = bare[:-1], 10_000
    elif bare[-1:] in ("k", "K"):
        bare, factor = bare[:-1], 1000
    bare = CELL_UNIT.sub("", bare).removesuffix("%")
    if decimal == ",":
        is_plain = re.fullmatch(r"[+-]?(\d+|\d{1,3}(\.\d{3}){1,4})(,\d+)?", bare)
        bare = bare.replace(".", "").replace(",", ".") if is_plain else ""
    elif re.fullmatch(r"[+-]?[1-9]\d{0,2}(,\d{3}){1,4}(\.\d+)?", bare):
        bare = bare.replace(",", "")
    if not re.fullmatch(r"[+-]?\d{1,15}(\.\d{1,15})?", bare):
        raise UsageError(
            f"line {line} of {source}: {text!r} is no number",
            wanted="digits with a decimal point, commas between thousands only",
            hint='correct the cell, or say decimal: "," in the mapping if commas begin decimals',
        )
    if factor > 1:
        whole, _, digits = bare.partition(".")
        places = len(str(factor)) - 1
        dropped = min(0, len(digits) - places)
        bare = whole + digits.ljust(places, "0")
        if len(digits) > places:
            bare = f"{bare[: len(whole) + places]}.{digits[places:]}"
    return Printed(text=bare, dropped=dropped)
