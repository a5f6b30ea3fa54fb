"""The world of the tests of expressions."""

from tests.support.query.ibis_world import world

__all__ = ["world"]
