ALTER TABLE tokens ADD COLUMN stored_key TEXT;
ALTER TABLE tokens ADD COLUMN server_key TEXT;
CREATE TABLE scram_salt (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    key TEXT NOT NULL
)
