"""A strict reader of the text format OpenMetrics 1.0, for what Prometheus would refuse."""

from __future__ import annotations

import re

Labels = frozenset[tuple[str, str]]
Samples = dict[tuple[str, Labels], float]
SAMPLE = re.compile(r"(?P<name>[a-zA-Z_]\w*)(?:\{(?P<labels>.+)\})? (?P<value>\S+)")
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
ESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}
SUFFIXES = {
    "counter": {"_total"},
    "gauge": {""},
    "unknown": {""},
    "histogram": {"_bucket", "_sum", "_count"},
}


def read(page: str) -> Samples:
    """Every sample of the page by name and labels; a page that is wrong is an AssertionError."""
    assert page.endswith("\n# EOF\n"), "the end is there once, as the last line"
    samples: Samples = {}
    families: dict[str, str] = {}
    family = ""
    for line in page.removesuffix("# EOF\n").splitlines():
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            assert family not in families, "all of a family stands together"
            families[family] = kind
        elif line.startswith("# HELP "):
            assert line.split(" ", 3)[2] == family, line
        else:
            name, labels, value = read_sample(line)
            assert name.removeprefix(family) in SUFFIXES[families[family]], line
            assert (name, labels) not in samples, line
            samples[name, labels] = value
    check_histograms(samples)
    return samples


def read_sample(line: str) -> tuple[str, Labels, float]:
    matched = SAMPLE.fullmatch(line)
    assert matched, line
    pairs = LABEL.findall(matched["labels"] or "")
    written = ",".join(f'{key}="{text}"' for key, text in pairs)
    assert written == (matched["labels"] or ""), line
    assert len({key for key, _ in pairs}) == len(pairs), line
    labels = {(key, re.sub(r"\\.", lambda one: ESCAPED[one[0]], text)) for key, text in pairs}
    return matched["name"], frozenset(labels), float(matched["value"])


def check_histograms(samples: Samples) -> None:
    """Buckets only grow up to the one without an end, which is the count."""
    for (name, labels), count in samples.items():
        if name.endswith("_count"):
            counts = buckets(samples, name.removesuffix("_count"), labels)
            assert list(counts.values()) == sorted(counts.values()), name
            assert counts[float("inf")] == count, name


def buckets(samples: Samples, family: str, labels: Labels) -> dict[float, float]:
    """The buckets of one histogram by their bounds, the least first."""
    found = {}
    for (name, of_bucket), count in samples.items():
        bound = dict(of_bucket).get("le")
        if name == f"{family}_bucket" and bound and of_bucket - {("le", bound)} == labels:
            found[float(bound)] = count
    return dict(sorted(found.items()))


def total(samples: Samples, name: str, /, **labels: str) -> float:
    """The sum of a metric's samples with these labels."""
    wanted = set(labels.items())
    return sum(value for (named, of), value in samples.items() if named == name and wanted <= of)
