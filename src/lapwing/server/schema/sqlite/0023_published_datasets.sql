CREATE TABLE published_datasets (
    page TEXT NOT NULL REFERENCES published (id),
    dataset TEXT NOT NULL,
    PRIMARY KEY (page, dataset)
);
CREATE INDEX published_datasets_of_dataset ON published_datasets (dataset);
INSERT INTO published_datasets (page, dataset) SELECT id, dataset FROM published
