"""What the model hub says, as sentences: before anything heavy is loaded."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from deliberation.errors import ModelError

CONNECT_S = 5.0


def check_hub(name: str, revision: str | None) -> bool:
    """Make sure that a hub id can be loaded; returns whether only the local copy is to be used.

    Raises:
        ModelError: the hub knows no such model or revision, wants a login, or cannot be reached
            while there is no local copy.
    """
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    offline = bool(constants.HF_HUB_OFFLINE)
    # Asked once and briefly: the hub client itself retries every file for half a minute.
    local = offline or not _reachable(constants.ENDPOINT)
    try:
        with _silent():
            hf_hub_download(name, "config.json", revision=revision, local_files_only=local)
    except GatedRepoError:
        raise ModelError(
            f"hf:{name}: the hub wants you to accept its terms and log in; do so on the model's "
            "page and set HF_TOKEN."
        ) from None
    except RepositoryNotFoundError:
        raise ModelError(
            f"hf:{name}: the hub knows no such model; check the id, or set HF_TOKEN if it is "
            "private."
        ) from None
    except RevisionNotFoundError:
        raise ModelError(
            f"hf:{name}@{revision}: the model has no such revision; name a branch, tag or commit."
        ) from None
    except LocalEntryNotFoundError:
        why = "HF_HUB_OFFLINE is set" if offline else "the hub cannot be reached"
        raise ModelError(
            f"hf:{name}: {why} and there is no local copy; go online, or name a folder as "
            "`path:DIR`, or use `embedded`."
        ) from None
    except EntryNotFoundError:
        raise ModelError(
            f"hf:{name}: it has no config.json, so transformers cannot load it; name another model."
        ) from None
    except HFValidationError:
        raise ModelError(f"hf:{name}: this is no valid hub id; check its spelling.") from None
    except HfHubHTTPError as error:
        status = error.response.status_code
        raise ModelError(f"hf:{name}: the hub answered {status}; try again later.") from None
    return local


def _reachable(endpoint: str) -> bool:
    try:
        urlopen(Request(endpoint, method="HEAD"), timeout=CONNECT_S).close()
    except HTTPError:  # it answered
        return True
    except OSError:
        return False
    return True


@contextmanager
def _silent() -> Iterator[None]:
    """The hub client logs each retry and each missing token; our sentence says it once."""
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
