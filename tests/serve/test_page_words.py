"""Every word that a page shows is there, and can be told in another language."""

from __future__ import annotations

import re

from dbdyno.language.words import told
from dbdyno.serve.pages import TEMPLATES, WORDS


def test_templates_and_scripts_use_every_word_and_only_those() -> None:
    text = "".join(file.read_text() for file in TEMPLATES.iterdir())
    used = set(re.findall(r"\bwords\.(\w+)", text))
    of_other_use = {"warmup", "measured", "no_page"}
    assert used | of_other_use == WORDS.keys()


def test_every_word_can_be_told_otherwise() -> None:
    catalogue = {word.template: "x" for word in WORDS.values()}
    assert {told(word, catalogue) for word in WORDS.values()} == {"x"}
