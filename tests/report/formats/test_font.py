from __future__ import annotations

import base64
import re

from dbdyno.report.formats.font import carried

TEXT = "延迟，与吞吐量 p95"


def test_the_font_has_the_chinese_of_the_text_and_nothing_else() -> None:
    rules = carried(TEXT)
    covered = re.findall(r"U\+([0-9A-F]+)", rules)
    assert sorted(chr(int(sign, 16)) for sign in covered) == sorted("延迟，与吞吐量")
    files = [base64.b64decode(data) for data in re.findall(r"base64,([^\"]+)", rules)]
    assert all(file.startswith(b"\0\1\0\0") for file in files)
    assert sum(map(len, files)) < 60_000, "whole, the font has a megabyte"
    more = carried("".join(map(chr, range(0x4E00, 0x4F00))))
    assert len(more) > len(rules)


def test_a_text_without_chinese_needs_no_font() -> None:
    assert carried("TPS −23.1 % [−25.0, −21.2]") == ""
