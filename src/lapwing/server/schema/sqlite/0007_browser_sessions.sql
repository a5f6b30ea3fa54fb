CREATE TABLE browser_sessions (
    hash TEXT PRIMARY KEY,
    previous TEXT,
    token TEXT NOT NULL REFERENCES tokens (id),
    form TEXT NOT NULL,
    rotated REAL NOT NULL,
    seen REAL NOT NULL
);
CREATE INDEX browser_sessions_before ON browser_sessions (previous)
