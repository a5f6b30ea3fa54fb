CREATE TABLE releases (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (name),
    dataset TEXT NOT NULL,
    created TEXT NOT NULL,
    title TEXT NOT NULL,
    declaration TEXT NOT NULL,
    manifest TEXT NOT NULL,
    archive BLOB NOT NULL,
    digest TEXT NOT NULL
);
CREATE INDEX releases_of_dataset ON releases (dataset, created);
CREATE UNIQUE INDEX releases_by_content ON releases (person, dataset, digest)
