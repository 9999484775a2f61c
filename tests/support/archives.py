"""Programs that are scripts, and archives of small files."""

import io
import tarfile
import zipfile


def program(path, text="code"):
    """An executable file, in folders that are made for it; its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def file(name, text="x", mode=0o644):
    """A member of an archive."""
    return name, tarfile.REGTYPE, text, mode


def link(name, end):
    """A symbolic link in an archive."""
    return name, tarfile.SYMTYPE, end, 0o777


def twin(name, first):
    """A hard link in an archive."""
    return name, tarfile.LNKTYPE, first, 0o644


def tar_of(place, packing, *items):
    """A tar of (name, kind, content or link target, mode)."""
    with tarfile.open(place, f"w:{packing}") as archive:
        for name, kind, text, mode in items:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, mode
            if kind == tarfile.REGTYPE:
                info.size = len(text)
            else:
                info.linkname = text
            archive.addfile(info, io.BytesIO(text.encode()) if info.size else None)


def jar_of(folder, *items):
    """A jar that holds such a tar, named inner.tar.gz."""
    jar, inner = folder / "made.jar", folder / "inner"
    tar_of(inner, "gz", *items)
    with zipfile.ZipFile(jar, "w") as outer:
        outer.write(inner, "inner.tar.gz")
    inner.unlink()
    return jar
