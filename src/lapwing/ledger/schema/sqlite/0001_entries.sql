CREATE TABLE entries (sequence INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, body TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL);
CREATE INDEX charges ON entries (subject) WHERE kind = 'charge';
CREATE UNIQUE INDEX answers ON entries (subject) WHERE kind = 'answer';
