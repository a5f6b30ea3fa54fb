CREATE TABLE teams (
    name TEXT PRIMARY KEY,
    created TEXT NOT NULL
);
ALTER TABLE people ADD COLUMN owner TEXT REFERENCES people (name);
ALTER TABLE people ADD COLUMN expires REAL
