CREATE TABLE saved (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (name),
    dataset TEXT NOT NULL,
    created TEXT NOT NULL,
    title TEXT NOT NULL,
    content TEXT NOT NULL,
    team TEXT
);
CREATE INDEX saved_of ON saved (dataset, person);
CREATE INDEX saved_of_team ON saved (dataset, team);
CREATE TABLE shared_answers (
    answer TEXT PRIMARY KEY REFERENCES answers (id),
    team TEXT NOT NULL
)
