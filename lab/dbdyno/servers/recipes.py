"""Servers that no package registry has, and what to write in a plan instead of their name.

The addresses are the vendors' to change, so a recipe names the file to look for and the form of the
reference, and leaves address and digest to the user. docs/reference/servers.md has more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

VERSION: Final = "VERSION"  # stands for the version that was asked for


@dataclass(frozen=True)
class Recipe:
    """How to have a server that dbdyno cannot fetch by name.

    Attributes:
        product: as one would write it in a reference.
        example: a version there has been.
        why: why the catalog does not have it, in a few words.
        ways: references to write, best first, each with what it wants from the user.
    """

    product: str
    example: str
    why: str
    ways: tuple[str, ...]

    def written_for(self, version: str) -> str:
        """What to write, for a version (the example's if none was asked for)."""
        named = (way.replace(VERSION, version or self.example) for way in self.ways)
        return ", or ".join(named) + "; see docs/reference/servers.md"


RECIPES: Final = (
    Recipe(
        "greatsql",
        "8.0.32-26",
        "its vendor publishes archives and images, and no package registry has them",
        (
            "write tarball:URL#sha256=HEX with the address and digest of "
            "GreatSQL-VERSION-Linux-glibc2.28-x86_64.tar.xz from its releases page",
            "container:greatsql/greatsql@sha256:HEX with the digest of the image's tag VERSION",
        ),
    ),
    Recipe(
        "percona",
        "8.0.36-28",
        "its vendor publishes archives and images, and no package registry has them",
        (
            "write tarball:URL#sha256=HEX with the address and digest of "
            "Percona-Server-VERSION-Linux.x86_64.glibc2.28-minimal.tar.gz from its downloads page",
            "container:percona/percona-server@sha256:HEX with the digest of the image's tag",
        ),
    ),
    Recipe(
        "tidb",
        "v7.5.1",
        "it is several programs that its own tool starts",
        (
            "start it by 'tiup playground VERSION --db 3 --kv 3 --pd 1' and write "
            "mysql://root@127.0.0.1:PORT,127.0.0.1:PORT,127.0.0.1:PORT/test with the ports it says",
            "write mysql://USER@HOST:4000,HOST:4000,HOST:4000/DATABASE for a cluster of yours",
        ),
    ),
    Recipe(
        "tdsql",
        "8.0",
        "it runs only at its vendor's or where its vendor installed it",
        ("write mysql://USER@HOST:PORT/DATABASE with the address of the instance",),
    ),
)
ALSO_CALLED: Final = {"percona-server": "percona", "ps": "percona", "tdsql-c": "tdsql"}


def recipe_for(product: str, recipes: Sequence[Recipe] = RECIPES) -> Recipe | None:
    """The recipe of a product, by any name it goes by; None if there is none."""
    named = ALSO_CALLED.get(product, product)
    return next((recipe for recipe in recipes if recipe.product == named), None)
