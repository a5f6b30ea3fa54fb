"""The PostgreSQL protocol, version 3, so that psql, drivers and business intelligence tools can ask the service.

`messages` reads and writes the messages of the protocol. `protocol` is the server's side of a connection as a state
machine over bytes. `scram` proves that a client knows a password without its being sent. `values` writes results and
reads parameters as the types of PostgreSQL. `statements` finds the statements in what a client sends. None of these
five knows of a socket, a clock or the service.

`session` answers statements by the service, and `listener` has the sockets. `settings` and `connection_statements` are
what a connection answers by itself, `results` and `refusals` what it answers with. `catalog` answers the statements by
which clients list tables, from public facts: `catalog_limits` refuses what would be too large, `catalog_rewriting`
writes a statement anew, and `catalog_facts` has the numbers and types of PostgreSQL.
"""
