CREATE TABLE catalogs (
    dataset TEXT NOT NULL,
    number INTEGER NOT NULL,
    created TEXT NOT NULL,
    person TEXT NOT NULL,
    digest TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (dataset, number)
)
