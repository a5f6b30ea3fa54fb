CREATE TABLE people (
    name TEXT PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('curator', 'analyst', 'auditor')),
    password TEXT,
    active INTEGER NOT NULL DEFAULT 1,
    created TEXT NOT NULL
);
CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (name),
    hash TEXT NOT NULL UNIQUE,
    label TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created TEXT NOT NULL,
    expires REAL NOT NULL,
    revoked INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE memberships (
    team TEXT NOT NULL,
    person TEXT NOT NULL REFERENCES people (name),
    current INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (team, person)
);
CREATE UNIQUE INDEX one_team ON memberships (person) WHERE current;
CREATE TABLE grants (
    dataset TEXT NOT NULL,
    person TEXT NOT NULL REFERENCES people (name),
    share TEXT,
    PRIMARY KEY (dataset, person)
);
CREATE TABLE team_shares (
    dataset TEXT NOT NULL,
    team TEXT NOT NULL,
    share TEXT NOT NULL,
    PRIMARY KEY (dataset, team)
);
CREATE TABLE policies (
    dataset TEXT PRIMARY KEY,
    division TEXT NOT NULL DEFAULT 'share' CHECK (division IN ('share', 'split')),
    most_epsilon TEXT,
    stopped INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE answers (
    id TEXT PRIMARY KEY,
    person TEXT NOT NULL REFERENCES people (name),
    dataset TEXT NOT NULL,
    created TEXT NOT NULL,
    request TEXT NOT NULL,
    document TEXT NOT NULL,
    arrow BLOB NOT NULL
);
CREATE INDEX answers_of ON answers (person, created);
CREATE TABLE requests (
    person TEXT NOT NULL REFERENCES people (name),
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    answer TEXT REFERENCES answers (id),
    problem TEXT,
    PRIMARY KEY (person, key)
);
CREATE TABLE audit (
    sequence INTEGER PRIMARY KEY,
    time TEXT NOT NULL,
    actor TEXT NOT NULL,
    act TEXT NOT NULL,
    subject TEXT NOT NULL,
    details TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
);
