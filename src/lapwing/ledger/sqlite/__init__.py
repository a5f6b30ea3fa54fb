"""A ledger in a SQLite file: the file, the lock and the mark beside it, and who asks on this machine."""
