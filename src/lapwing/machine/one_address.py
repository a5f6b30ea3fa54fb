"""Requests that stay with the address that they are sent to: an answer that would send them on is an error.

And which address is of this machine.
"""

import ipaddress
import urllib.request
from http.client import HTTPResponse
from typing import Any, cast


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a status from 300 to 399 is raised as an HTTPError."""

    def redirect_request(self, *_: Any) -> None:
        return None


def opened(request: urllib.request.Request, seconds: float) -> HTTPResponse:
    """Return the response of the address itself, whose scheme the caller has checked.

    Following a redirect would send what was meant for one address to another one, perhaps unencrypted or behind a
    firewall. It would also take the answer of a sign-in page for that of who was asked.

    Args:
        seconds: To wait for each step.

    Raises:
        HTTPError: For a status outside of 200 to 299.
        OSError: If the system refuses.
        ValueError: If it fails.
    """
    return cast(HTTPResponse, urllib.request.build_opener(_NoRedirects).open(request, timeout=seconds))


def is_this_machine(host: str) -> bool:
    """Tell whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
