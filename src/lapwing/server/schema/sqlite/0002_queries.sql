CREATE TABLE queries (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (name),
    dataset TEXT NOT NULL,
    created TEXT NOT NULL,
    request TEXT NOT NULL,
    key TEXT,
    status TEXT NOT NULL CHECK (status IN ('waiting', 'running', 'done', 'failed', 'cancelled')),
    stopping INTEGER NOT NULL DEFAULT 0,
    holder TEXT NOT NULL,
    seen BIGINT NOT NULL,
    answer TEXT REFERENCES answers (id),
    problem TEXT
);
CREATE UNIQUE INDEX queries_by_key ON queries (person, key);
CREATE INDEX queries_of ON queries (person, created);
CREATE INDEX queries_by_status ON queries (status);
