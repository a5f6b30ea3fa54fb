CREATE TABLE dataset_roles (
    dataset TEXT NOT NULL,
    person TEXT NOT NULL REFERENCES people (name),
    role TEXT NOT NULL CHECK (role IN ('curator', 'auditor')),
    PRIMARY KEY (dataset, person)
);
CREATE INDEX dataset_roles_of ON dataset_roles (person)
