CREATE TABLE lapwing.steps (number integer PRIMARY KEY);
CREATE TABLE lapwing.ledgers (ledger text PRIMARY KEY, sequence bigint NOT NULL, hash text NOT NULL);
CREATE TABLE lapwing.entries (
    ledger text NOT NULL,
    sequence bigint NOT NULL,
    time text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    body text NOT NULL,
    previous text NOT NULL,
    hash text NOT NULL,
    PRIMARY KEY (ledger, sequence)
);
CREATE INDEX charges ON lapwing.entries (ledger, subject, sequence) WHERE kind = 'charge';
CREATE UNIQUE INDEX answers ON lapwing.entries (ledger, subject) WHERE kind = 'answer';
CREATE TABLE lapwing.askers (ledger text NOT NULL, asker text NOT NULL, missed timestamptz, PRIMARY KEY (ledger, asker));
