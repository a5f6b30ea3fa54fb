CREATE TABLE default_costs (
    dataset TEXT NOT NULL,
    person TEXT NOT NULL REFERENCES people (name),
    epsilon TEXT,
    daily_share TEXT NOT NULL,
    day TEXT NOT NULL,
    spent TEXT NOT NULL,
    PRIMARY KEY (dataset, person)
)
