CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    person TEXT NOT NULL REFERENCES people (name),
    created TEXT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
CREATE TABLE provider_sessions (
    token TEXT PRIMARY KEY REFERENCES tokens (id),
    subject TEXT NOT NULL,
    id_token TEXT NOT NULL,
    refresh TEXT,
    checked DOUBLE PRECISION NOT NULL
)
