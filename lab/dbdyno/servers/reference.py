"""Reads a reference such as ``mysql:8.0.15`` and finds its row in the catalog.

Only exact versions are taken: "the newest 8.0" would name another server next month, and a stored
result could no longer say what it measured.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from dbdyno.errors import UnknownSystemError
from dbdyno.servers.programs.catalog import CATALOG
from dbdyno.servers.programs.catalog_entry import CatalogEntry
from dbdyno.servers.recipes import recipe_for


def find(reference: str, catalog: Sequence[CatalogEntry] = CATALOG) -> CatalogEntry:
    """The catalog's row for a reference.

    Raises:
        UnknownSystemError: no such form, product or version; lists those known and the nearest,
            or says what to write for a server that no registry has.
    """
    asked = reference.strip().lower()
    for entry in catalog:
        if entry.reference == asked:
            return entry
    product, _, version = asked.partition(":")
    recipe = recipe_for(product)
    if recipe is not None:
        raise UnknownSystemError(
            f"dbdyno cannot fetch {product} by name: {recipe.why}",
            found=repr(reference),
            hint=recipe.written_for(version),
        )
    known = [entry.reference for entry in catalog]
    nearest = _nearest(asked, catalog)
    raise UnknownSystemError(
        _what_is_wrong(asked, reference, catalog),
        wanted=f"one of {', '.join(known)}",
        found=repr(reference),
        hint=f"did you mean {nearest}?" if nearest else "see: dbdyno servers list",
    )


def _what_is_wrong(asked: str, reference: str, catalog: Sequence[CatalogEntry]) -> str:
    product, colon, version = asked.partition(":")
    if not colon or not product or not version:
        return f"{reference!r} does not name a product and a version, as in mysql:8.0.15"
    if product not in {entry.product for entry in catalog}:
        return f"dbdyno knows no product {product!r}"
    return f"dbdyno knows no version {version!r} of {product}"


def _nearest(asked: str, catalog: Sequence[CatalogEntry]) -> str | None:
    """What may have been meant: the newest that continues what was typed, else the version with
    the closest numbers, else the reference most alike, else None.
    """
    known = [entry.reference for entry in catalog]
    continued = [reference for reference in known if asked and reference.startswith(asked)]
    if continued:
        return continued[-1]
    product, _, version = asked.partition(":")
    numbers = tuple(int(part) for part in version.split(".") if part.isdecimal())
    siblings = [entry for entry in catalog if entry.product == product]
    if numbers and siblings:
        return min(siblings, key=lambda entry: _distance(entry.version_numbers, numbers)).reference
    alike = difflib.get_close_matches(asked, known, n=1, cutoff=0.5)
    return alike[0] if alike else None


def _distance(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(abs(a - b) for a, b in zip(left, right, strict=False))
