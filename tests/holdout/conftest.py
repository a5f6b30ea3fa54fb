"""Sessions of this room use one database after another: what one may open is a matter of `tests/engines`."""

from tests.support.engines.reused import reused_databases

__all__ = ["reused_databases"]
