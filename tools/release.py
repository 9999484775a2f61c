"""Builds each wheel twice, holds both against each other, and writes it with its lists of parts.

usage: python tools/release.py FOLDER        as `make release` does

The folder gets a wheel for each of `COMPILERS`, ``dbdyno-python.cdx.json`` (CycloneDX: every
Python package that the wheels ask for, with version and digests; the Rust crates' list is in the
wheel itself), the manual page ``dbdyno.1``, the reports of examples (``tools/examples.py``) and
``SHA256SUMS``. zig compiles and links for an old glibc, so a wheel runs on Linux with a glibc of
2018 or newer. Each wheel has the program that draws charts in a browser, which vl-convert makes,
and the pages of `docs`, which messages name.
A time or an order that got into a wheel shows, as would a path of the builder's: the wheel holds
one, the same for everybody (`PLACE`).
The exit status is 1 if two builds differ, and the members that do are named; or if a tool is
missing.
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

from dbdyno.report.charts.drawing import can_draw
from dbdyno.report.formats import html

ROOT = Path(__file__).parents[1]
LOCKED = ROOT / "tools" / "requirements-of-tests.txt"
TOOLS = ROOT / "target" / "lock" / "bin"
PLACE = Path(tempfile.gettempdir()) / "dbdyno-build"
PYTHON_PARTS = "dbdyno-python.cdx.json"
MANUAL = "dbdyno.1"
COMPILERS = {
    "x86_64-unknown-linux-gnu": ("gcc", "gcc"),
    "aarch64-unknown-linux-gnu": ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
}
"""gcc of each target and its Debian package. Wheels take its libgcc_s: with zig's unwinder, a
script that runs out of memory in compiled Lua ends the process."""
GLIBC = "manylinux_2_28"
"""The platform tag of the oldest glibc on which the wheels run."""


def main(folder: Path) -> int:
    """Makes the release; 0 if both builds of each wheel are the same bytes."""
    if lacking := missing():
        lines = ["a release needs what this machine lacks:", *lacking]
        sys.stderr.write("\n  ".join(lines) + "\n")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    list_python_parts(folder / PYTHON_PARTS)
    subprocess.run([sys.executable, ROOT / "tools" / "man.py", folder / MANUAL], check=True)
    subprocess.run([sys.executable, ROOT / "tools" / "examples.py", folder], check=True)
    differ = []
    for target in COMPILERS:
        with tempfile.TemporaryDirectory() as kept:
            wheels = [build(Path(kept) / name, target) for name in ("first", "second")]
            differ += differing(*wheels)
            shutil.copy(wheels[0], folder)
    made = sorted(path for path in folder.iterdir() if path.is_file())
    sums = "".join(f"{sha256(path)}  {path.name}\n" for path in made)
    (folder / "SHA256SUMS").write_text(sums)
    sys.stdout.write(sums)
    for name in differ:
        sys.stderr.write(f"differs between two builds: {name}\n")
    return int(bool(differ))


def missing() -> list[str]:
    """Tools that this machine lacks, each with the command that installs it."""
    lacking = [] if can_draw() else ["vl-convert: make setup"]
    if not any(TOOLS.parent.glob("lib/python*/site-packages/ziglang")):
        lacking.append(f"zig: {TOOLS / 'pip'} install ziglang")
    lacking += [
        f"{tool}: apt-get install {package}"
        for tool, package in (*COMPILERS.values(), ("make", "make"), ("git", "git"))
        if shutil.which(tool) is None
    ]
    for target in COMPILERS:
        libraries = _said("rustc", "--print", "target-libdir", "--target", target).decode().strip()
        if not Path(libraries).is_dir():
            lacking.append(f"Rust's library for {target}: rustup target add {target}")
    return lacking


def build(out: Path, target: str) -> Path:
    """A wheel of the commit for a target, in `out`, from a copy of the commit's files.

    That lies at `PLACE`, as the list of crates names the folder; nothing else of the wheel does.

    Raises:
        FileExistsError: something is there, maybe another build.
    """
    PLACE.mkdir(mode=0o700)
    try:
        return _built(PLACE / "source", out, target)
    finally:
        shutil.rmtree(PLACE)


def _built(source: Path, out: Path, target: str) -> Path:
    source.mkdir()
    archive = _said("git", "archive", "HEAD")
    subprocess.run(["tar", "--extract", "--directory", source], input=archive, check=True)
    package = source / "lab" / "dbdyno"
    program = package / "report" / "templates" / html.PROGRAM.name
    program.write_text(html.program(), encoding="utf-8")
    images = shutil.ignore_patterns("images")  # only the README shows them
    shutil.copytree(source / "docs", package / "docs", ignore=images)
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    moved = {source: "dbdyno", cargo: "cargo", PLACE: "build"}
    compiler, _ = COMPILERS[target]
    unwinder = _said(compiler, "-print-file-name=libgcc_s.so.1").decode().strip()
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": _said("git", "log", "-1", "--format=%ct").decode().strip(),
        "CARGO_TARGET_DIR": str(PLACE / "target"),
        "RUSTFLAGS": " ".join(
            [
                *(f"--remap-path-prefix={old}={new}" for old, new in moved.items()),
                f"-Clink-arg={unwinder}",
            ]
        ),
        "CFLAGS": " ".join(f"-ffile-prefix-map={old}={new}" for old, new in moved.items()),
        "CARGO_ZIGBUILD_PYTHON_PATH": str(TOOLS / "python"),
        "CARGO_ZIGBUILD_CACHE_DIR": str(PLACE / "zigbuild"),
        "ZIG_GLOBAL_CACHE_DIR": str(PLACE / "zig"),
        "TARGET_LIBS": "-lunwind",  # LuaJIT's own program takes what gcc links by itself
    }
    command = [Path(sys.executable).parent / "maturin", "build", "--release", "--locked", "--zig"]
    command += ["--target", target, "--compatibility", GLIBC]
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
    """Writes the list of the packages that the wheels ask for, at the locked versions."""
    compile_ = [TOOLS / "uv", "pip", "compile", "pyproject.toml"]
    options = [
        *("--extra", "charts", "--extra", "export", "--extra", "fleet"),
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
