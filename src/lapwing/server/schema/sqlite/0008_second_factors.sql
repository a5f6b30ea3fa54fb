CREATE TABLE second_factors (
    person TEXT PRIMARY KEY REFERENCES people (name),
    secret TEXT NOT NULL,
    confirmed INTEGER NOT NULL DEFAULT 0,
    created TEXT NOT NULL,
    last_step INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    pause_until REAL NOT NULL DEFAULT 0
);
CREATE TABLE recovery_codes (
    person TEXT NOT NULL REFERENCES people (name),
    hash TEXT NOT NULL,
    used TEXT,
    PRIMARY KEY (person, hash)
);
CREATE TABLE sign_ins (
    hash TEXT PRIMARY KEY,
    document TEXT NOT NULL,
    expires REAL NOT NULL
)
