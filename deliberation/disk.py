"""Writing files so that a crash or a full disk leaves either the old content or the new, whole."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from deliberation.errors import RunError

TEMPORARY_SUFFIX = ".tmp"

_FULL = (errno.ENOSPC, errno.EDQUOT)
# Libraries in Rust or C++ report a full disk in words only.
_FULL_WORDS = tuple(os.strerror(code) for code in _FULL)


@contextmanager
def disk_errors(folder: Path, needed: int) -> Iterator[None]:
    """Turn a failed write below `folder` into a `RunError`; `needed` is its size in bytes.

    Other exceptions pass through, except those of libraries that say in words that the disk is
    full.
    """
    try:
        yield
    except RunError:
        raise
    except Exception as error:
        if is_disk_full(error):
            raise RunError(
                f"disk full: {needed} bytes are needed in {folder} ({_free(folder)}); what was "
                "recorded is whole: free some space, then continue with `--resume`."
            ) from error
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise RunError(
                f"{folder}: cannot be written ({reason}); check the folder and its permissions, "
                "or choose another `run.dir`."
            ) from error
        raise


def is_disk_full(error: BaseException) -> bool:
    """Whether an exception says that the disk, or the user's quota on it, is full."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    return any(words in str(error) for words in _FULL_WORDS)


def _free(folder: Path) -> str:
    try:
        return f"{shutil.disk_usage(folder).free} bytes are free"
    except OSError:
        return "how many are free is not known"


def write_all(descriptor: int, data: bytes) -> None:
    """`os.write` until all of it is written."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: a rename survives a power cut only after this."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(
    path: Path, data: bytes, *, before_rename: Callable[[], None] | None = None
) -> None:
    """Replace `path` by `data`: under a temporary name first, fsynced, then renamed.

    Raises:
        RunError: the disk is full or the folder cannot be written; `path` is as it was.
    """
    temporary = path.with_name(f".{path.name}{TEMPORARY_SUFFIX}")
    with disk_errors(path.parent, len(data)):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            try:
                write_all(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if before_rename is not None:
                before_rename()
            os.replace(temporary, path)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def append_durably(path: Path, data: bytes) -> None:
    """Append `data` and fsync it. If that fails, the file is as long as it was.

    Raises:
        RunError: the disk is full or the file cannot be written.
    """
    with disk_errors(path.parent, len(data)):
        new = not path.exists()
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            length = os.fstat(descriptor).st_size
            try:
                write_all(descriptor, data)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, length)
                raise
        finally:
            os.close(descriptor)
        if new:
            sync_folder(path.parent)


_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph"})


def on_network_file_system(path: Path) -> bool:
    """Whether `path` lies on a disk of another machine, as far as the system tells."""
    place = path.resolve()
    mounts = {Path(mount.mountpoint): mount.fstype for mount in psutil.disk_partitions(all=True)}
    for folder in (place, *place.parents):
        if folder in mounts:
            kind = mounts[folder]
            return kind in _NETWORK or kind.startswith("fuse.ssh")
    return False
