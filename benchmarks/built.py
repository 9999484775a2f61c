"""The Rust programs that the benchmarks measure with, built when they are needed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@cache
def example(name: str) -> str:
    """An example of the engine's crate, in release mode; cargo builds only what has changed."""
    build = ["cargo", "build", "--release", "--quiet", "--locked", "--package", "dbdyno-core"]
    subprocess.run([*build, "--example", name], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    return str(ROOT / target / "release" / "examples" / name)


@contextmanager
def null_responder(socket: Path, sessions: int) -> Iterator[dict[str, Any]]:
    """A server that answers at once; it ends with this process, however that ends."""
    command = [example("null_responder"), "--socket", str(socket)]
    with subprocess.Popen(
        [*command, "--sessions", str(sessions)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("the null responder did not start; its words are above")
        yield json.loads(line)
        # Leaving closes its standard input, and that ends it.
