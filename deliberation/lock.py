"""One process owns a run folder at a time."""

import fcntl
import os
import socket
from pathlib import Path

from deliberation.disk import disk_errors, write_all
from deliberation.errors import RunError
from deliberation.runfiles import LOCK


def lock_folder(folder: Path) -> int:
    """Take the folder for this process: an open descriptor that holds the lock.

    The file stays when the process ends; only the lock on it counts, and the kernel drops that.
    """
    path = folder / LOCK
    with disk_errors(folder, 0):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with disk_errors(folder, 64):
            os.ftruncate(descriptor, 0)
            write_all(descriptor, f"{os.getpid()} on {socket.gethostname()}\n".encode())
    except BlockingIOError:
        owner = path.read_text(encoding="utf-8", errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise RunError(
            f"{folder}: in use by process {owner}; wait until it ends or stop it, or choose "
            "another `run.dir`."
        ) from None
    except OSError as error:
        os.close(descriptor)
        raise RunError(
            f"{folder}: cannot be locked ({error.strerror}); choose a `run.dir` on a local disk."
        ) from error
    except RunError:
        os.close(descriptor)
        raise
    return descriptor
