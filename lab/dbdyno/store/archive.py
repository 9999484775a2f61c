"""A zip file of text files with their SHA-256 sums, read as untrusted input.

A bundle comes from somebody else. Files are read into memory one by one, never unpacked to disk,
under limits on their unpacked size, not on the size stated in the archive. A name outside
`SHA256SUMS`, a missing file, a duplicate name or a wrong sum refuses the whole. The sums have the
form of `sha256sum`, so an unpacked bundle can be checked without dbdyno.
"""

from __future__ import annotations

import hashlib
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dbdyno.errors import BundleError

SUMS: Final = "SHA256SUMS"
NAME: Final = re.compile(r"(?:[a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*")
SUM_LINE: Final = re.compile(rf"([0-9a-f]{{64}})  ({NAME.pattern})")
METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
WRITTEN_AT: Final = (1980, 1, 1, 0, 0, 0)
"""One time for all entries, so that the same run gives the same bundle, byte by byte."""
END: Final = struct.Struct("<4s4H2LH")
END_SIGNATURE: Final = b"PK\x05\x06"
BIG_SIGNATURE: Final = b"PK\x06\x07"
BIG_SIZE: Final = 20


@dataclass(frozen=True)
class Limits:
    """Limits of a bundle after unpacking.

    Attributes:
        values: in all files, counted by their commas; each takes up to 450 bytes of memory.
    """

    files: int = 60_000
    file_bytes: int = 64 * 2**20
    total_bytes: int = 512 * 2**20
    values: int = 8_000_000
    directory_bytes: int = 16 * 2**20


LIMITS: Final = Limits()


def write(path: Path, files: Mapping[str, bytes]) -> str:
    """Write files and sums to a zip file; returns the sums' digest, BundleError if too large."""
    sizes = [len(content) for content in files.values()]
    most, total = max(sizes), sum(sizes)
    values = sum(map(_values, files.values()))
    is_large = len(files) >= LIMITS.files or most > LIMITS.file_bytes or total > LIMITS.total_bytes
    if is_large or values > LIMITS.values:
        raise BundleError(
            "the run is too large for a bundle",
            wanted=f"at most {LIMITS.files:,} files of {LIMITS.file_bytes >> 20} MiB, "
            f"{LIMITS.values:,} values, {LIMITS.total_bytes >> 20} MiB in all",
            found=f"{len(files):,} files, {most >> 20} MiB the largest, "
            f"{values:,} values, {total >> 20} MiB in all",
            hint="export it as tables: dbdyno export RUN --parquet DIR",
        )
    sums = "".join(f"{_sha256(files[name])}  {name}\n" for name in sorted(files)).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in [(SUMS, sums), *sorted(files.items())]:
            entry = zipfile.ZipInfo(name, WRITTEN_AT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, content)
    return _sha256(sums)


def read(path: Path, limits: Limits = LIMITS) -> tuple[dict[str, bytes], str]:
    """The files of a bundle and the digest of its sums; BundleError unless all are as summed."""
    with _bundle_errors(path):
        _check_end(path, limits)
        with zipfile.ZipFile(path) as archive:
            entries = _entries(archive)
            if SUMS not in entries:
                raise BundleError(f"{path.name} is no evidence bundle", found=f"no {SUMS} in it")
            sums = _content(archive, entries.pop(SUMS), limits, limits.total_bytes)
            wanted = _sums(sums)
            _check_names(set(wanted), set(entries))
            files, left, values = {}, limits.total_bytes - len(sums), 0
            for name, entry in entries.items():
                files[name] = _content(archive, entry, limits, left)
                left -= len(files[name])
                values += _values(files[name])
                if values > limits.values:
                    raise BundleError(
                        f"{path.name} has more values than a bundle may have",
                        wanted=f"{limits.values:,} at most",
                        found=f"more, up to {name}",
                    )
                if _sha256(files[name]) != wanted[name]:
                    raise BundleError(
                        f"{name} in the bundle was changed",
                        wanted=f"SHA-256 {wanted[name]}",
                        found=_sha256(files[name]),
                    )
            return files, _sha256(sums)


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The entries by name; each a plain file with a plain name, packed in a known way."""
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        name, mode = entry.filename, entry.external_attr >> 16
        if not NAME.fullmatch(name) or entry.orig_filename != name:
            raise BundleError("a name in the bundle leads elsewhere", found=repr(name)[:80])
        if name in entries:
            raise BundleError(f"{name} is twice in the bundle")
        if entry.flag_bits & 1 or entry.compress_type not in METHODS:
            raise BundleError(f"{name} in the bundle is encrypted or packed in an unknown way")
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise BundleError(f"{name} in the bundle is no plain file", found=stat.filemode(mode))
        entries[name] = entry
    return entries


def _content(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limits: Limits, left_bytes: int
) -> bytes:
    most = min(limits.file_bytes, left_bytes)
    with archive.open(entry) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise BundleError(
            f"{entry.filename} in the bundle is larger than a bundle's file may be",
            wanted=f"{limits.file_bytes:,} bytes at most, {limits.total_bytes:,} in all",
            found="more",
        )
    return content


def _values(content: bytes) -> int:
    """Most values that a file of JSON or of histograms can hold."""
    return content.count(b",") + 1


def _sums(text: bytes) -> dict[str, str]:
    lines = [SUM_LINE.fullmatch(line) for line in text.decode("ascii").splitlines()]
    if not all(lines):
        raise BundleError(f"{SUMS} of the bundle has lines that are no sums")
    pairs = [(line[2], line[1]) for line in lines if line]
    if len(dict(pairs)) != len(pairs):
        raise BundleError(f"{SUMS} of the bundle names a file twice")
    return dict(pairs)


def _check_names(wanted: set[str], names: set[str]) -> None:
    if wanted == names:
        return
    missing, extra = sorted(wanted - names), sorted(names - wanted)
    raise BundleError(
        "the bundle does not hold the files it names",
        wanted=f"{missing[0]} and {len(missing) - 1} more" if missing else f"what {SUMS} names",
        found=f"also {extra[0]} ({len(extra)} such)" if extra else "not there",
    )


def _check_end(path: Path, limits: Limits) -> None:
    """Check the archive's last record, before reading its table of contents into memory.

    Only archives of `write` are accepted: a single disk, no comment, and no Zip64 extension, whose
    table may be of any length.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - END.size - BIG_SIZE))
        tail = file.read()
    if len(tail) < END.size or not tail[-END.size :].startswith(END_SIGNATURE):
        raise BundleError(
            f"{path.name} is no evidence bundle",
            wanted="a zip file made by dbdyno bundle",
            found="another file, or one that was cut off",
        )
    _, _, _, _, files, directory_bytes, _, comment = END.unpack(tail[-END.size :])
    big = tail.startswith(BIG_SIGNATURE) and len(tail) == END.size + BIG_SIZE
    if comment or big or files > limits.files or directory_bytes > limits.directory_bytes:
        raise BundleError(
            f"{path.name} is larger than a bundle may be",
            wanted=f"{limits.files:,} files at most",
            found=f"{files:,} files",
        )


@contextmanager
def _bundle_errors(path: Path) -> Iterator[None]:
    """Raise BundleError for Python's errors on a broken zip file."""
    try:
        yield
    except OSError as error:
        raise BundleError(f"{path.name} cannot be read", found=error.strerror) from error
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        ValueError,
        RuntimeError,
        NotImplementedError,
    ) as error:
        raise BundleError(
            f"{path.name} is damaged", found=str(error)[:200], hint="get it once more"
        ) from error


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
