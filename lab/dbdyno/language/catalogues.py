"""Languages of reports, and their catalogues of translations.

English stands in the code. Another language has a folder `language/<language>` of gettext
catalogues, a file for each room with sentences, for the usual tools of translators: a msgid is the
English template, a msgstr the same in that language with the same placeholders. A catalogue is read
once, on its first use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

from dbdyno.language.words import NAME, Said, translated

FOLDER: Final = Path(__file__).parent
_SIGN: Final = "[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]"
_GAP: Final = re.compile(f"(?<={_SIGN}) (?={_SIGN})")
"""A template parts its values from its words; between two Chinese signs there is no space."""


class Language(StrEnum):
    """A language, under its tag in HTML and on the command line."""

    EN = "en"
    ZH = "zh"

    @property
    def tag(self) -> str:
        """The language with its script, as a page's `lang` names it."""
        return "zh-Hans" if self is Language.ZH else self.value


@cache
def catalogue(language: Language) -> Mapping[str, str]:
    """Templates of a language by the English template; empty for English."""
    if language is Language.EN:
        return {}
    import polib  # noqa: PLC0415 - costs time, and English needs none

    files = sorted((FOLDER / language.value).glob("*.po"))
    entries = (entry for file in files for entry in polib.pofile(str(file)))
    return {entry.msgid: entry.msgstr for entry in entries if entry.msgstr}


def said_in(text: str, language: Language) -> str:
    """The text in a language; names and plain strings stay as they are."""
    translation = translated(text, catalogue(language))
    if language is Language.EN or not isinstance(text, Said) or text.template == NAME:
        return translation
    return _GAP.sub("", translation)
