"""What browsers let the pages do: load this process's own files, send forms to it, and nothing else."""

from typing import Final


def policy(nonce: str | None = None) -> str:
    """Return a content security policy.

    Args:
        nonce: Which styles that a script of ours adds may bear; the editor adds its own. None lets in no such style.
    """
    styles = "'self'" if nonce is None else f"'self' 'nonce-{nonce}'"
    return (
        f"default-src 'none'; script-src 'self'; style-src {styles}; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


POLICY: Final = policy()
