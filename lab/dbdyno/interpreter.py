"""Command lines of dbdyno's Python processes, which never import from the working folder.

Python by itself puts the working folder (for ``-m``) or a script's own folder first on its search
path. The working folder may be a stranger's: a `json.py` in it would run with the lab's rights.
So no other file names the interpreter, and each of these commands has ``-P`` or ``-I``.
"""

from __future__ import annotations

import sys
from pathlib import Path

Command = tuple[str, ...]


def module(name: str) -> Command:
    """Runs a module, with the packages and the PYTHONPATH of this process."""
    return (sys.executable, "-P", "-m", name)


def script(path: str) -> Command:
    """Run a file with the installed packages."""
    return (sys.executable, "-P", path)


def bare_script(path: str) -> Command:
    """Run a file with the standard library only, ignoring the environment."""
    return (sys.executable, "-I", "-S", path)


def beside(program: str) -> Path:
    """A program in the folder of this interpreter, as a virtual environment has them."""
    return Path(sys.executable).parent / program
