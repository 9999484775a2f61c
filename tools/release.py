"""Builds each wheel twice, holds both against each other, and writes it with its lists of parts.

usage: python tools/release.py FOLDER        as `make release` does

The folder gets a wheel for each of `COMPILERS`, the source distribution, the site of the docs,
``dbdyno-python.cdx.json`` (CycloneDX: every Python package that the wheels ask for, with version
and digests; the Rust crates' list is in the wheel itself), the manual page ``dbdyno.1``, the
reports of examples (``tools/examples.py``) and ``SHA256SUMS``. zig compiles and links for an old
glibc, so a wheel runs on Linux with a glibc of 2018 or newer. Each wheel has the program that draws
charts in a browser, which vl-convert makes, and the pages of `docs`, which messages name. A link
from these pages to a file of the repository alone becomes the file's name.
A time or an order that got into a wheel shows, as would a path of the builder's: the wheel holds
one, the same for everybody (`PLACE`).
A wheel whose compiler or Rust library this machine lacks is left out, and what is lacking is named.
The exit status is 1 if two builds differ or an archive lacks a file, which are named; or if a tool
of all wheels is missing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from dbdyno.report.charts.drawing import can_draw
from dbdyno.report.formats import html

ROOT = Path(__file__).parents[1]
LOCKED = ROOT / "tools" / "requirements-of-tests.txt"
TOOLS = ROOT / "target" / "lock" / "bin"
SITE = ROOT / "target" / "site"
MATURIN = Path(sys.executable).parent / "maturin"
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
LAB = "lab/dbdyno"
LINK = re.compile(r"\[([^]]+)\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
SOURCES = (
    *(LAB, "engine/wire/src", "engine/core/src", "engine/binding/src"),
    *("Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "LICENSE"),
)
"""What a wheel is built of, all of which the source distribution has."""


def main(folder: Path) -> int:
    """Makes the release; 0 if both builds of each wheel are the same bytes and lack nothing."""
    lacking = {target: missing_for(target) for target in COMPILERS}
    lines = [line for of_target in lacking.values() for line in of_target]
    if (of_all := missing()) or all(lacking.values()):
        lines = ["a release needs what this machine lacks:", *of_all, *lines]
        sys.stderr.write("\n  ".join(lines) + "\n")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    list_python_parts(folder / PYTHON_PARTS)
    subprocess.run([sys.executable, ROOT / "tools" / "man.py", folder / MANUAL], check=True)
    subprocess.run([sys.executable, ROOT / "tools" / "examples.py", folder], check=True)
    shutil.make_archive(str(folder.resolve() / "dbdyno-site"), "zip", SITE.parent, SITE.name)
    archives, wrong = [source_distribution(folder)], list[str]()
    for target in (name for name, of_target in lacking.items() if not of_target):
        with tempfile.TemporaryDirectory() as kept:
            wheels = [build(Path(kept) / name, target) for name in ("first", "second")]
            wrong += [f"differs between two builds: {name}" for name in differing(*wheels)]
            archives.append(Path(shutil.copy(wheels[0], folder)))
    wrong += [f"{path.name} lacks {name}" for path in archives for name in left_out(path)]
    files = sorted(path for path in folder.iterdir() if path.is_file())
    sums = "".join(f"{sha256(path)}  {path.name}\n" for path in files)
    (folder / "SHA256SUMS").write_text(sums)
    sys.stdout.write(sums)
    no_wheel = [f"no wheel for {target}: {'; '.join(it)}" for target, it in lacking.items() if it]
    sys.stderr.write("".join(f"{line}\n" for line in (*no_wheel, *wrong)))
    return int(bool(wrong))


def missing() -> list[str]:
    """Tools of every wheel that this machine lacks, each with the command that installs it."""
    lacking = [] if can_draw() else ["vl-convert: make setup"]
    if not any(TOOLS.parent.glob("lib/python*/site-packages/ziglang")):
        lacking.append(f"zig: {TOOLS / 'pip'} install ziglang")
    lacking += [
        f"{tool}: apt-get install {tool}" for tool in ("make", "git") if shutil.which(tool) is None
    ]
    return lacking


def missing_for(target: str) -> list[str]:
    """Tools of a target's wheel that this machine lacks, each with the command that installs it."""
    compiler, package = COMPILERS[target]
    lacking = [] if shutil.which(compiler) else [f"{compiler}: apt-get install {package}"]
    libraries = _said("rustc", "--print", "target-libdir", "--target", target).decode().strip()
    if not Path(libraries).is_dir():
        debian = "Debian's rustc-web first on PATH: apt-get install libstd-rust-web-dev:arm64"
        lacking.append(f"Rust's library for {target}: rustup target add {target}, or with {debian}")
    return lacking


@contextmanager
def copy_of_commit() -> Iterator[Path]:
    """A copy of the commit's files, at `PLACE` as the list of crates names the folder.

    Raises:
        FileExistsError: something is there, maybe another build.
    """
    PLACE.mkdir(mode=0o700)
    try:
        source = PLACE / "source"
        source.mkdir()
        archive = _said("git", "archive", "HEAD")
        subprocess.run(["tar", "--extract", "--directory", source], input=archive, check=True)
        yield source
    finally:
        shutil.rmtree(PLACE)


def source_distribution(folder: Path) -> Path:
    """Writes the source distribution of the commit."""
    with copy_of_commit() as source:
        command = [MATURIN, "sdist", "--out", folder.resolve()]
        subprocess.run(command, cwd=source, env=_dated(), check=True)
    (path,) = folder.glob("*.tar.gz")
    return path


def build(out: Path, target: str) -> Path:
    """A wheel of the commit for a target, in `out`; nothing else of it names the folder."""
    with copy_of_commit() as source:
        return _built(source, out, target)


def _built(source: Path, out: Path, target: str) -> Path:
    package = source / LAB
    program = package / "report" / "templates" / html.PROGRAM.name
    program.write_text(html.program(), encoding="utf-8")
    copy_docs(source, package)
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    moved = {source: "dbdyno", cargo: "cargo", PLACE: "build"}
    compiler, _ = COMPILERS[target]
    unwinder = _said(compiler, "-print-file-name=libgcc_s.so.1").decode().strip()
    environment = {
        **_dated(),
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
        # LuaJIT strips that program, and this machine's own strip knows no other machine's.
        "TARGET_STRIP": f"{compiler.removesuffix('gcc')}strip",
        "TARGET_AR": f"{compiler.removesuffix('gcc')}ar rcus",
    }
    command = [MATURIN, "build", "--release", "--locked", "--zig"]
    command += ["--target", target, "--compatibility", GLIBC]
    subprocess.run([*command, "--out", out], cwd=source, env=environment, check=True)
    (wheel,) = out.glob("*.whl")
    return wheel


def copy_docs(source: Path, package: Path) -> None:
    """Copies `docs` into a package, in whose pages a link leads only to a file that is there."""
    images = shutil.ignore_patterns("images")  # only the README shows them
    shutil.copytree(source / "docs", package / "docs", ignore=images)
    for page in (package / "docs").rglob("*.md"):
        home = (source / page.relative_to(package)).parent
        page.write_text(LINK.sub(partial(_link, source=source, home=home), page.read_text()))


def _link(link: re.Match[str], source: Path, home: Path) -> str:
    text, target = link.groups()
    name = os.path.relpath(home / target, source)
    return link[0] if name.startswith("docs/") else f"{text} (`{name}` in the repository)"


def _dated() -> dict[str, str]:
    """The environment, with the commit's time for everything that notes one."""
    time = _said("git", "log", "-1", "--format=%ct").decode().strip()
    return {**os.environ, "SOURCE_DATE_EPOCH": time}


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


def left_out(archive: Path) -> list[str]:
    """Files of the commit that a wheel or the source distribution lacks."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            names = {f"lab/{name}" for name in wheel.namelist()}
        return sorted(committed(LAB) - names)
    with tarfile.open(archive) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    return sorted(committed(*SOURCES) - names)


def committed(*paths: str) -> set[str]:
    """Names of the commit's files at and below these paths."""
    return set(_said("git", "ls-tree", "-r", "--name-only", "HEAD", *paths).decode().splitlines())


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
