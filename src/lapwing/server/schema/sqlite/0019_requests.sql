CREATE TABLE listed_datasets (
    dataset TEXT PRIMARY KEY
);
CREATE TABLE access_requests (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (name),
    dataset TEXT NOT NULL,
    kind TEXT NOT NULL,
    share TEXT,
    reason TEXT NOT NULL,
    created REAL NOT NULL,
    state TEXT NOT NULL DEFAULT 'open',
    decided REAL,
    decided_by TEXT,
    answer TEXT
);
CREATE INDEX access_requests_of_person ON access_requests (person, created);
CREATE INDEX access_requests_of_dataset ON access_requests (dataset, state)
