"""Finds the tables of a text: cells between bars, or a cell a line as in a copied web page.

A table with a cell a line has lost its lines of division. Its heading is a run of names of columns;
its rows are as long, and alike in words and numbers. Its first heading may be missing, as a blank
cell leaves no line. If a number is left over, a cell is missing: its last row is then shorter.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import Final

from dbdyno.audit.page.above import Captions
from dbdyno.audit.page.grid import COLUMNS_MAX, NUMERIC, Grid

RULE: Final = re.compile(r"^[|+]?\s*:?[-=]+:?\s*([|+]\s*:?[-=]+:?\s*)*[|+]?$")
"""Line below a table's heading; with + also above it, between its rows and below them."""
ESCAPED: Final = re.compile(r"\\([|*_<>~])")
FENCE: Final = re.compile(r"\s*(?:```|~~~)")
COMMENT: Final = re.compile(r"<!([0-9]{1,9})>")
"""The place of a comment in a text, with its number."""
CELL_MAX: Final = 100
"""Signs of a cell with a line of its own."""
WORDS_MAX: Final = 12
"""Headings of a cell a line without a known meaning, for example systems."""
NO_CELL: Final = re.compile(
    r"\s*(?:[#>]|={3,}$|-{4,}$|[-*+]\s|!?\[|<[a-zA-Z/!]|\d{1,3}[.)、]\s*(?=[^\d\s])"
    r"|[一二三四五六七八九十]+、)"
)
"""Begin of a heading, its underline, an item, a picture, a link or a tag."""
SPACED_MAX: Final = 1000
"""Signs of a line with cells between spaces."""
LEVELS_MIN: Final = 3
LEVEL: Final = re.compile(r"\d{1,5}")
BLANK: Final = re.compile(r"[-\u2013\u2014/]+|n/?a", re.IGNORECASE)
"""A cell in the place of a number."""

IsHeading = Callable[[str], bool]


def text_tables(
    text: str,
    is_heading: IsHeading,
    comments: Sequence[str],
    above: Captions | None = None,
    line: int = 0,
) -> Iterator[Grid]:
    """The tables of a text, or of a comment in it.

    Args:
        is_heading: recognises a column's name.
        comments: texts of comments; their numbers mark their places in the text.
        above: captions of the page above a comment.
        line: the first of a comment; 0 for a page.
    """
    marked = text.splitlines()
    lines, captions = [COMMENT.sub("", one) for one in marked], above or Captions()
    first, is_hidden = max(1, line), line > 0
    alone, rules = CellsALine(lines, is_heading), _rules_below(lines)
    place, is_code = 0, False
    while place < len(lines):
        is_ended = place in rules and not is_code
        block = _ended(lines, place, rules) if is_ended else _piped(lines, place, is_heading)
        block = block or _tabbed(lines, place, is_heading) or _matrix(lines, place)
        if block is None and not is_code:
            block = alone.table_at(place)
        end = block.begin if block else place + 1
        for number in range(place, end):
            if FENCE.match(lines[number]):
                is_code = not is_code
            elif not is_code and "|" not in lines[number]:
                captions.words(lines[number], first + number)
        if block:
            numbers = [[first + at for at in row] for row in block.places]
            yield Grid.of(block.rows, numbers, captions.now(), is_hidden, captions.section)
            end = block.end
        for number in range(place, end):
            for mark in COMMENT.finditer(marked[number]):
                if int(mark[1]) < len(comments):
                    hidden, at = comments[int(mark[1])], first + number
                    yield from text_tables(hidden, is_heading, (), captions.of_comment(), at)
        place = end


@dataclass(frozen=True)
class TableLines:
    """Lines of a table: its rows with the place of each cell, from its first line to its end."""

    rows: list[list[str]]
    places: list[list[int]]
    begin: int
    end: int


def _piped(lines: Sequence[str], place: int, is_heading: IsHeading) -> TableLines | None:
    """The table whose heading has cells between bars, above a rule or a row with a number."""
    if "|" not in lines[place] or place + 1 == len(lines) or RULE.match(lines[place].strip()):
        return None
    is_ruled = RULE.match(lines[place + 1].strip())
    heading, begin = _between_bars(lines[place]), place
    if not is_ruled and not _is_bare(heading, lines[place + 1], is_heading):
        return None
    rows, places = [heading], [[begin] * len(heading)]
    place += 2 if is_ruled else 1
    while place < len(lines):
        line = lines[place]
        is_rule = re.search("--|==", line) and RULE.match(line.strip())
        if is_rule and "+" not in line and rows[1:] and any(map(is_heading, rows[-1])):
            place = places.pop()[0]  # of the next table
            rows.pop()
            break
        if "|" not in line and not (is_rule and "+" in line):
            break
        if not is_rule:
            rows.append(_between_bars(line))
            places.append([place] * len(rows[-1]))
        place += 1
    return TableLines(rows, places, begin, place) if len(rows) > 1 else None


def _tabbed(lines: Sequence[str], place: int, is_heading: IsHeading) -> TableLines | None:
    """The table whose cells have tabs between them: as many in the heading as below it."""
    ends = range(place, len(lines))
    end = next((n for n in ends if "\t" not in lines[n]), len(lines))
    rows = [[cell.strip() for cell in line.split("\t")] for line in lines[place:end]]
    is_quoted = any(cell.startswith('"') for row in rows for cell in row)
    if is_quoted or len(rows) < 2 or len(rows[0]) != len(rows[1]):
        return None
    numbers = sum(map(bool, map(NUMERIC.match, rows[1][1:])))
    if numbers < (1 if any(map(is_heading, rows[0])) else 2):
        return None
    places = [[place + n] * len(row) for n, row in enumerate(rows)]
    return TableLines(rows, places, place, end)


def _matrix(lines: Sequence[str], place: int) -> TableLines | None:
    """The table whose heading is a line of rising load levels, with a name in each line below."""
    heading = _spaced(lines[place])
    levels = [int(cell) for cell in heading if LEVEL.fullmatch(cell)]
    if len(levels) < LEVELS_MIN or len(levels) < len(heading) or sorted({*levels}) != levels:
        return None
    rows = [["", *heading]]
    for below in range(place + 1, len(lines)):
        cells = _spaced(lines[below])
        names = [cell for cell in cells if not NUMERIC.match(cell)]
        if len(cells) != len(rows[0]) or len(names) != 1 or names[0] not in (cells[0], cells[-1]):
            break
        rows.append([names[0], *(cell for cell in cells if cell != names[0])])
    places = [[n] * len(row) for n, row in enumerate(rows, place)]
    return TableLines(rows, places, place, place + len(rows)) if len(rows) > 2 else None


def _spaced(line: str) -> list[str]:
    """The cells between spaces of a line, which may be an item of a list."""
    return line.strip(" \t-*#").split() if len(line) <= SPACED_MAX else []


def _rules_below(lines: Sequence[str]) -> dict[int, int]:
    """The rule of each table with a cell a line and a bar behind each, by its first line.

    The rule has a part for each column.
    """
    rules = dict[int, int]()
    for place, line in enumerate(lines):
        width = line.strip().strip("|").count("|") + 1
        is_rule = 2 <= width <= place and _is_ended(line) and RULE.match(line.strip())
        heading = lines[place - width : place] if is_rule else []
        if heading and all(_is_ended(cell) and not RULE.match(cell.strip()) for cell in heading):
            rules[place - width] = place
    return rules


def _ended(lines: Sequence[str], place: int, rules: Mapping[int, int]) -> TableLines:
    """The table with a cell a line and a bar behind each."""
    rule = rules[place]
    width = rule - place
    end = next(
        (n for n in range(rule + 1, len(lines)) if n in rules or not _is_ended(lines[n])),
        len(lines),
    )
    cells = [
        (cell, at)
        for at in (*range(place, rule), *range(rule + 1, end))
        for cell in _between_bars(lines[at])
    ]
    each = [cells[n : n + width] for n in range(0, len(cells), width)]
    rows = [[cell for cell, _ in row] for row in each]
    return TableLines(rows, [[at for _, at in row] for row in each], place, end)


def _is_ended(line: str) -> bool:
    """Recognises a cell with a bar behind it, or a rule."""
    text = line.strip()
    return text == "|" or (text.endswith("|") and not text.startswith("|"))


def _is_bare(heading: Sequence[str], below: str, is_heading: IsHeading) -> bool:
    """Recognises a table without a rule by names of columns, and numbers below them."""
    row = _between_bars(below)
    is_table = 1 < len(heading) == len(row) and any(map(NUMERIC.match, row))
    return is_table and sum(map(is_heading, heading)) * 2 > len(heading)


def _between_bars(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return [ESCAPED.sub(r"\1", cell.strip(" *`")) for cell in re.split(r"(?<!\\)\|", inner)]


@dataclass(frozen=True)
class Shape:
    """A way to divide cells into a heading and rows, by their places.

    Attributes:
        begin: of the heading; first: of the first row; end: behind the last whole row.
        width: number of cells of a row.
        is_cut: a part of a row follows the last whole row.
        is_plain: words in each row, or rising whole numbers before them, show where rows begin.
    """

    begin: int
    first: int
    end: int
    width: int
    is_cut: bool
    is_plain: bool

    @property
    def rank(self) -> tuple[bool, int, int, int]:
        """The higher of two shapes explains more."""
        return self.is_plain, self.end, -self.width, -self.begin


class CellsALine:
    """Tables with a cell a line among the lines of a text; blank lines do not count."""

    def __init__(self, lines: Sequence[str], is_heading: IsHeading) -> None:
        filled = [(place, line) for place, line in enumerate(lines) if line.strip(" \t|")]
        self._places = [place for place, _ in filled]
        self._cells = [_cell(line) for _, line in filled]
        """Texts; empty for all other lines."""
        self._is_heading = is_heading
        self._known: dict[int, bool] = {}

    def table_at(self, place: int) -> TableLines | None:
        """The table with its first line here; None if another line comes first."""
        at = bisect_left(self._places, place)
        if at == len(self._places) or self._places[at] != place or not self._is_known(at):
            return None
        shapes = [
            shape
            for begin, first, has_names in self._headings(at)
            for shape in self._shapes(begin, first, has_names)
            if shape.is_plain or begin == at
        ]
        whole = [shape for shape in shapes if not shape.is_cut]
        best = max(whole or shapes, key=lambda shape: shape.rank, default=None)
        return self._block(best) if best else None

    def _headings(self, at: int) -> Iterator[tuple[int, int, bool | None]]:
        """Possible headings: begin, end, and whether names or load levels must stand below.

        Words above a table may be a column's name, too, and the first row may begin with a name.
        """
        known = self._run(at, self._is_known)
        levels = self._run(known, lambda n: self._is_above(n, known))
        words = self._run(known, self._is_word, WORDS_MAX)
        for begin in range(at, min(at + 3, known)):
            yield begin, known, None
            yield begin, known - 1, None
            if words > known:
                yield begin, words, False
                yield begin, words - 1, True
        if levels - known > 1:
            yield known - 1, levels, True

    def _run(self, begin: int, is_part: Callable[[int], bool], most: int = COLUMNS_MAX) -> int:
        """The end of the alike cells from a place."""
        ends = range(begin, min(begin + most, len(self._cells)))
        return next((n for n in ends if not is_part(n)), ends.stop)

    def _shapes(self, begin: int, first: int, has_names: bool | None) -> Iterator[Shape]:
        """Rows below a heading as long, or shorter by a blank cell, which left no line."""
        for width in (first - begin, first - begin + 1):
            is_longer = width > first - begin
            alike = [self._is_number(n) for n in range(first, first + width)]
            wanted = True if is_longer else has_names
            if width < 2 or not any(alike[1:]) or not self._is_row(first, alike):
                continue
            if wanted is not None and alike != [not wanted, *[True] * (width - 1)]:
                continue
            end, names = first, self._cells[first - width + 1 : first]
            while self._is_row(end, alike) and self._cells[end + 1 : end + width] != names:
                end += width
            if width > 3 and end == first + width and alike == [*[True] * (width - 2), False, True]:
                continue  # the end of a row, and a mean below it: "0.62 0.74 avg 0.68"
            levels = [self._cells[n] for n in range(first, end, width)]
            is_rising = len(levels) > 1 and all(starmap(_is_less, pairwise(levels)))
            has_words = not all(alike) and (alike[-1] or len(levels) > 1)  # else one below it
            is_plain = has_words or is_rising
            if is_plain or wanted is None:
                yield Shape(begin, first, end, width, self._is_cut(end, alike), is_plain)

    def _is_cut(self, end: int, alike: Sequence[bool]) -> bool:
        """Recognises a part of a row behind the last whole row."""
        is_named = not alike[0] and self._is_word(end) and not self._is_known(end)
        return self._is_number(end) or (is_named and self._is_number(end + 1))

    def _block(self, shape: Shape) -> TableLines:
        """The table of a shape, with the part of a row behind it as it is."""
        ends = [*range(shape.first, shape.end + 1, shape.width)]
        if shape.is_cut:
            ends.append(self._run(shape.end + 1, self._is_number))
        spans = [(shape.begin, shape.first), *pairwise(ends)]
        rows = [self._cells[begin:end] for begin, end in spans]
        places = [self._places[begin:end] for begin, end in spans]
        if len(rows[0]) < shape.width:
            rows[0], places[0] = ["", *rows[0]], [places[0][0], *places[0]]
        return TableLines(rows, places, places[0][0], places[-1][-1] + 1)

    def _is_known(self, at: int) -> bool:
        """Recognises a column's name."""
        if at not in self._known:
            self._known[at] = self._is_word(at) and self._is_heading(self._cells[at])
        return self._known[at]

    def _is_word(self, at: int) -> bool:
        return at < len(self._cells) and bool(self._cells[at]) and not self._is_number(at)

    def _is_number(self, at: int) -> bool:
        cell = self._cells[at] if at < len(self._cells) else ""
        return bool(NUMERIC.match(cell) or BLANK.fullmatch(cell))

    def _is_above(self, at: int, begin: int) -> bool:
        """Recognises a load level of a heading, above the level before it."""
        return _is_less(self._cells[at - 1] if at > begin else "0", self._cells[at])

    def _is_row(self, at: int, alike: Sequence[bool]) -> bool:
        """Compares cells with the cells of a row, by words and numbers."""
        row = self._cells[at : at + len(alike)]
        is_whole = len(row) == len(alike) and all(row)
        return is_whole and [self._is_number(n) for n in range(at, at + len(alike))] == [*alike]


def _is_less(first: str, second: str) -> bool:
    """Compares two whole numbers; False for anything else."""
    both = [text.replace(",", "") for text in (first, second)]
    return all(re.fullmatch("[0-9]{1,9}", text) for text in both) and int(both[0]) < int(both[1])


def _cell(line: str) -> str:
    """A line as a cell; empty for a heading, an item, a picture, a tag, or a sentence."""
    text = line.strip(" \t|")
    is_cell = len(text) <= CELL_MAX and "\t" not in text and not NO_CELL.match(text)
    return ESCAPED.sub(r"\1", text.strip("*`")) if is_cell else ""
