"""Results as PEP 249 (DB-API 2.0) has them: connections, cursors, types and exceptions. `lapwing.dbapi` is the door."""
