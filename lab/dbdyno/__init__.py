"""dbdyno: compares database servers under load and gives a verdict you can defend.

    import dbdyno
    run = dbdyno.load("latest")

The names below are looked up when they are first used: the command line, and sysbench's persona
above all, must not wait for the packages of a notebook.
"""

TYPE_CHECKING = False  # a type checker takes it for true; to import typing costs 5 ms

if TYPE_CHECKING:
    from dbdyno.api import Run, load

__all__ = ["Run", "__version__", "load"]
__version__ = "1.0.0"


def __getattr__(name: str) -> object:
    if name not in ("Run", "load"):
        raise AttributeError(f"module 'dbdyno' has no attribute {name!r}")
    from dbdyno import api  # noqa: PLC0415 - see above

    return getattr(api, name)
