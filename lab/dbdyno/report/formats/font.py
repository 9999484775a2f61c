"""The Chinese font of a page: Noto Sans SC, cut down to the page's characters.

Whole, the font has over a megabyte. The subset keeps all glyph numbers and empties the outlines of
unused glyphs, without knowledge of any other table
(https://learn.microsoft.com/typography/opentype/spec/otff).
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

from dbdyno.report.charts.drawing import CHINESE, FONTS

FAMILY: Final = "Noto Sans SC, carried"
TABLES: Final = ("OS/2", "cmap", "glyf", "head", "hhea", "hmtx", "loca", "maxp", "name", "post")
"""What a browser asks of a font; rules for vertical and other typesetting are left out."""
COMPOSITE_MORE: Final = 0x20
COMPOSITE_SIZES: Final = ((0x1, 2), (0x8, 2), (0x40, 4), (0x80, 8))
"""What follows a component, by its flags, beyond the two bytes that always do."""

Font = Mapping[str, bytes]


def carried(text: str) -> str:
    """The style rules of a font with the Chinese characters of the text; empty without any."""
    wanted = {ord(sign) for sign in CHINESE.findall(text)}
    rules = []
    for path in sorted(FONTS.glob("*.ttf")):
        font, glyphs = _read(path)
        if kept := {glyphs[sign] for sign in wanted if sign in glyphs}:
            data = base64.b64encode(_written(_only(font, kept))).decode()
            covered = ", ".join(f"U+{sign:X}" for sign in sorted(wanted & set(glyphs)))
            rules.append(
                f'@font-face {{ font-family: "{FAMILY}"; unicode-range: {covered}; '
                f'src: url("data:font/ttf;base64,{data}"); }}\n'
            )
    return "".join(rules)


@cache
def _read(path: Path) -> tuple[Font, dict[int, int]]:
    """A font's tables, and the glyph of each character."""
    data = path.read_bytes()
    (count,) = struct.unpack_from(">H", data, 4)
    font = {}
    for at in range(12, 12 + 16 * count, 16):
        tag, _, begin, length = struct.unpack_from(">4sIII", data, at)
        font[tag.decode()] = data[begin : begin + length]
    return font, dict(_characters(font["cmap"]))


def _characters(cmap: bytes) -> Iterator[tuple[int, int]]:
    """The characters of a table of format 4: segments of neighbours."""
    (count,) = struct.unpack_from(">H", cmap, 2)
    places = [struct.unpack_from(">I", cmap, 8 + 8 * at)[0] for at in range(count)]
    base = next(place for place in places if struct.unpack_from(">H", cmap, place)[0] == 4)
    (twice,) = struct.unpack_from(">H", cmap, base + 6)
    ends, starts = base + 14, base + 16 + twice
    for at in range(0, twice, 2):
        (end,) = struct.unpack_from(">H", cmap, ends + at)
        start, shift = (struct.unpack_from(">H", cmap, starts + n * twice + at)[0] for n in (0, 1))
        place = starts + 2 * twice + at
        (offset,) = struct.unpack_from(">H", cmap, place)
        for sign in range(start, end + 1):
            glyph = sign
            if offset:
                (glyph,) = struct.unpack_from(">H", cmap, place + offset + 2 * (sign - start))
            if glyph and sign != 0xFFFF:
                yield sign, (glyph + shift) & 0xFFFF


def _only(font: Font, kept: set[int]) -> Font:
    """The font with the outlines of these glyphs and their components only."""
    is_long = struct.unpack_from(">h", font["head"], 50)[0]
    loca = [n for (n,) in struct.iter_unpack(">I" if is_long else ">H", font["loca"])]
    places = loca if is_long else [2 * place for place in loca]
    outlines = [font["glyf"][low:high] for low, high in pairwise(places)]
    waiting, every = [0, *kept], set[int]()
    while waiting:
        if (glyph := waiting.pop()) not in every:
            every.add(glyph)
            waiting += _components(outlines[glyph])
    outlines_kept = [outline if at in every else b"" for at, outline in enumerate(outlines)]
    ends = [0]
    for outline in outlines_kept:
        ends.append(ends[-1] + len(outline))
    head = font["head"][:50] + struct.pack(">h", 1) + font["head"][52:]
    new = {
        "glyf": b"".join(outlines_kept),
        "loca": struct.pack(f">{len(ends)}I", *ends),
        "head": head,
    }
    return {tag: new.get(tag, font[tag]) for tag in TABLES}


def _components(outline: bytes) -> Iterator[int]:
    """Components of a composite glyph; empty for a glyph with outlines of its own."""
    if not outline or struct.unpack_from(">h", outline)[0] >= 0:
        return
    at, flags = 10, COMPOSITE_MORE
    while flags & COMPOSITE_MORE:
        flags, glyph = struct.unpack_from(">HH", outline, at)
        yield glyph
        at += 6 + sum(size for flag, size in COMPOSITE_SIZES if flags & flag)


def _written(font: Font) -> bytes:
    """The tables as a file."""
    count = len(font)
    power = 1 << (count.bit_length() - 1)
    head = struct.pack(
        ">IHHHH", 0x10000, count, 16 * power, power.bit_length() - 1, 16 * (count - power)
    )
    entries, body, begin = [], b"", 12 + 16 * count
    for tag, table in sorted(font.items()):
        padded = table + b"\0" * (-len(table) % 4)
        total = sum(struct.unpack(f">{len(padded) // 4}I", padded)) & 0xFFFFFFFF
        entries.append(struct.pack(">4sIII", tag.encode(), total, begin + len(body), len(table)))
        body += padded
    return head + b"".join(entries) + body
