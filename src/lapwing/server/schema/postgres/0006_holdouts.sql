CREATE TABLE holdouts (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (name),
    dataset TEXT NOT NULL,
    created TEXT NOT NULL,
    secret TEXT NOT NULL,
    terms TEXT NOT NULL,
    questions INTEGER NOT NULL,
    asked INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX holdouts_of ON holdouts (person, dataset, created);
CREATE TABLE holdout_answers (
    holdout TEXT NOT NULL REFERENCES holdouts (id),
    number INTEGER NOT NULL,
    key TEXT NOT NULL,
    created TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (holdout, number)
);
CREATE UNIQUE INDEX holdout_answers_by_key ON holdout_answers (holdout, key);
CREATE INDEX holdout_answers_kept ON holdout_answers (created);
