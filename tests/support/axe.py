"""axe-core, which says what in a page a screen reader or a keyboard cannot use.

npm packs it and runs nothing of it; what came is checked by its digest and kept in the cache, so
that the tests ask a registry once for each machine.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

VERSION: Final = "4.14.1"
SHA512: Final = (
    "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)
RULES: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CONTRAST: Final = ["color-contrast"]
"""All that other colours can break."""


def program(cache: Path) -> str:
    """The program's text, from the cache or freshly packed."""
    kept = cache / f"axe-core-{VERSION}.tgz"
    if not kept.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            asked = ["npm", "pack", f"axe-core@{VERSION}", "--pack-destination", folder]
            subprocess.run(asked, cwd=folder, check=True, capture_output=True, timeout=120)
            next(Path(folder).glob("*.tgz")).replace(kept)
    digest = base64.b64encode(hashlib.sha512(kept.read_bytes()).digest()).decode()
    assert digest == SHA512, f"{kept} is not axe-core {VERSION}: remove it"
    with tarfile.open(kept) as archive:
        file = archive.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


def violations(page: Page, axe: str, rules: list[str] = RULES) -> list[str]:
    """What the page does wrong, a line for each rule with the first element it is about."""
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate(
        "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", rules
    )
    return [
        f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]} ({len(one['nodes'])})"
        for one in found["violations"]
    ]
