"""What is in an image: which product and version, and where its server keeps its data.

The image itself is asked, as a folder's program is: names of images and tags prove nothing. It is
pulled by its digest, which docker and podman compare with what comes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import ProvisionError, ServerError, UsageError
from dbdyno.servers.foreign.container_program import PULL_S_MAX, ContainerProgram, image_of
from dbdyno.servers.programs import identify
from dbdyno.servers.programs.catalog_entry import CatalogEntry
from dbdyno.servers.programs.sources_folder import FolderSource

DATA: Final = "/var/lib/mysql"
ASK: Final = 'exec "$(command -v mariadbd || command -v mysqld)" --version'


@dataclass(frozen=True)
class ContainerImage:
    """An image that is here.

    Attributes:
        name: ``IMAGE@sha256:HEX``.
        entry: what is in it, as the catalog says it of others.
        data: folder of the server's data within it.
    """

    name: str
    entry: CatalogEntry
    data: str


def look(
    program: ContainerProgram, reference: str, report: Callable[[str], None]
) -> ContainerImage:
    """Pull an image if it is not here, and ask what is in it.

    Raises:
        UnknownSystemError: the reference is not well formed.
        UsageError: it is not one of MySQL or MariaDB.
        ProvisionError: it cannot be pulled, or nothing in it says what it is.
    """
    name = image_of(reference)
    volumes = _volumes(program, name)
    if volumes is None:
        report(f"{reference}: pulling the image")
        try:
            program.call("pull", name, seconds_max=PULL_S_MAX)
        except ServerError as error:
            raise ProvisionError(
                f"{reference} cannot be pulled", found=error.found, hint="check name and digest"
            ) from error
        volumes = _volumes(program, name) or []
    return ContainerImage(name, _entry(program, name, reference), _data(reference, volumes))


def _volumes(program: ContainerProgram, name: str) -> list[str] | None:
    """The folders that an image says hold data; None if it is not here."""
    said = program.says("image", "inspect", "--format", "{{json .Config.Volumes}}", name)
    return None if said is None else list(json.loads(said) or {})


def _entry(program: ContainerProgram, name: str, reference: str) -> CatalogEntry:
    alone = ("--rm", "--network", "none", "--entrypoint", "sh")
    words = program.says("run", *alone, name, "-c", ASK) or ""
    found = identify.understood(words)
    if found is None:
        raise ProvisionError(
            f"{reference} does not say that it holds a server dbdyno can run",
            wanted="an image with mysqld or mariadbd that answers --version",
            found=words or "no such program",
        )
    if found.product == "postgres":
        raise UsageError(f"{reference}: only images of MySQL and MariaDB can be run yet")
    source = FolderSource(Path(name), name.partition("@sha256:")[2])  # its files stay within it
    return CatalogEntry(
        found.product, found.version, source, (), found.authentication, "", named=reference
    )


def _data(reference: str, volumes: list[str]) -> str:
    if not volumes or DATA in volumes:
        return DATA
    if len(volumes) == 1:
        return volumes[0]
    raise ProvisionError(
        f"{reference}: it is not clear where its server keeps its data",
        wanted=f"a volume {DATA}, or one volume in all",
        found=", ".join(volumes),
    )
