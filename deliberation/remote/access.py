"""Where a served model is asked, and with which key."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

from deliberation.errors import ModelError
from deliberation.modelref import ModelRef

KEY_VARIABLE = "OPENAI_API_KEY"
OPENAI = "api.openai.com"


def base_url(ref: ModelRef) -> str | None:
    """The URL for the client; None for OpenAI's own."""
    if ref.url is None:
        return None
    # `vllm serve` tells its address without the path under which it speaks OpenAI's protocol.
    bare = ref.scheme == "vllm" and not urlsplit(ref.url).path
    return ref.url + "/v1" if bare else ref.url


def server_name(ref: ModelRef) -> str:
    """The server as a message names it."""
    return base_url(ref) or OPENAI


def api_key(ref: ModelRef) -> str:
    """The key from the environment; "none" for a server on this machine or network without one.

    Raises:
        ModelError: a key is needed and not set.
    """
    if key := os.environ.get(KEY_VARIABLE):
        return key
    if ref.scheme == "vllm" or (ref.url is not None and is_local(ref.url)):
        return "none"
    raise ModelError(
        f"{ref}: no API key; set the environment variable {KEY_VARIABLE}, or use a local model."
    )


def is_local(url: str) -> bool:
    """Whether the host is this machine or its own network."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or "." not in host
    return address.is_private or address.is_loopback
