CREATE TABLE invites (
    person TEXT PRIMARY KEY REFERENCES people (name),
    hash TEXT NOT NULL UNIQUE,
    expires REAL NOT NULL
)
