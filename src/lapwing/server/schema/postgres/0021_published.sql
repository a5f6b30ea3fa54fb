CREATE TABLE publishing (
    dataset TEXT PRIMARY KEY,
    origins TEXT NOT NULL
);
CREATE TABLE published (
    id TEXT PRIMARY KEY,
    dataset TEXT NOT NULL,
    person TEXT NOT NULL REFERENCES people (name),
    title TEXT NOT NULL,
    name TEXT,
    address TEXT UNIQUE,
    content TEXT,
    created DOUBLE PRECISION NOT NULL,
    withdrawn DOUBLE PRECISION,
    withdrawn_by TEXT
);
CREATE INDEX published_of_dataset ON published (dataset, created)
