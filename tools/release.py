"""Builds the wheel twice, holds both against each other, and writes it with its lists of parts.

usage: python tools/release.py FOLDER        as `make release` does

The folder gets the wheel, ``dbdyno-python.cdx.json`` (CycloneDX: every Python package that the
wheel asks for, with version and digests; the Rust crates' list is in the wheel itself) and
``SHA256SUMS``. A time or an order that got into the wheel shows, as would a path of the builder's:
the wheel holds one, the same for everybody (`PLACE`).
The exit status is 1 if they differ, and the members that do are named.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCKED = ROOT / "tools" / "requirements-of-tests.txt"
TOOLS = ROOT / "target" / "lock" / "bin"
PLACE = Path(tempfile.gettempdir()) / "dbdyno-build"
PYTHON_PARTS = "dbdyno-python.cdx.json"


def main(folder: Path) -> int:
    """Makes the release; 0 if both builds are the same bytes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    list_python_parts(folder / PYTHON_PARTS)
    with tempfile.TemporaryDirectory() as kept:
        wheels = [build(Path(kept) / name) for name in ("first", "second")]
        differ = differing(*wheels)
        shutil.copy(wheels[0], folder)
    made = sorted(path for path in folder.iterdir() if path.is_file())
    sums = "".join(f"{sha256(path)}  {path.name}\n" for path in made)
    (folder / "SHA256SUMS").write_text(sums)
    sys.stdout.write(sums)
    for name in differ:
        sys.stderr.write(f"differs between two builds: {name}\n")
    return int(bool(differ))


def build(out: Path) -> Path:
    """A wheel of the commit in `out`, from a copy of its files.

    That lies at `PLACE`, as the list of crates names the folder; nothing else of the wheel does.

    Raises:
        FileExistsError: something is there, maybe another build.
    """
    PLACE.mkdir(mode=0o700)
    try:
        return _built(PLACE / "source", out)
    finally:
        shutil.rmtree(PLACE)


def _built(source: Path, out: Path) -> Path:
    source.mkdir()
    archive = _said("git", "archive", "HEAD")
    subprocess.run(["tar", "--extract", "--directory", source], input=archive, check=True)
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    moved = {source: "dbdyno", cargo: "cargo", PLACE: "build"}
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": _said("git", "log", "-1", "--format=%ct").decode().strip(),
        "CARGO_TARGET_DIR": str(PLACE / "target"),
        "RUSTFLAGS": " ".join(f"--remap-path-prefix={old}={new}" for old, new in moved.items()),
        "CFLAGS": " ".join(f"-ffile-prefix-map={old}={new}" for old, new in moved.items()),
    }
    command = [Path(sys.executable).parent / "maturin", "build", "--release", "--locked"]
    subprocess.run([*command, "--out", out], cwd=source, env=environment, check=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def _said(*command: str) -> bytes:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def differing(first: Path, second: Path) -> list[str]:
    """Names of members that are not the same bytes in both wheels; the wheels' own if only order
    or times differ."""
    if first.read_bytes() == second.read_bytes():
        return []
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        names = sorted({*one.namelist(), *other.namelist()})
        found = [name for name in names if _member(one, name) != _member(other, name)]
    return found or [first.name]


def _member(wheel: zipfile.ZipFile, name: str) -> bytes | None:
    return wheel.read(name) if name in wheel.namelist() else None


def list_python_parts(path: Path) -> None:
    """Writes the list of the packages that the wheel asks for, at the locked versions."""
    compile_ = [TOOLS / "uv", "pip", "compile", "pyproject.toml", "--extra", "fleet"]
    options = [
        "--extra",
        "export",
        "--universal",
        "--python-version",
        "3.11",
        "--generate-hashes",
        "--quiet",
        "--no-header",
    ]
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "requirements.txt"
        subprocess.run(
            [*compile_, *options, "--constraint", LOCKED, "--output-file", asked],
            cwd=ROOT,
            check=True,
        )
        subprocess.run(
            [
                *(TOOLS / "cyclonedx-py", "requirements", asked, "--output-reproducible"),
                *("--pyproject", ROOT / "pyproject.toml", "--output-file", path),
            ],
            check=True,
        )


def sha256(path: Path) -> str:
    """The digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
