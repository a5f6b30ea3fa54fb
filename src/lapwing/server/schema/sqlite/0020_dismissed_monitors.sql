CREATE TABLE dismissed_monitors (
    dataset TEXT NOT NULL,
    monitor TEXT NOT NULL,
    dismissed REAL NOT NULL,
    PRIMARY KEY (dataset, monitor)
)
