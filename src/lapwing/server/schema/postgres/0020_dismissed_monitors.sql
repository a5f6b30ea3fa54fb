CREATE TABLE dismissed_monitors (
    dataset TEXT NOT NULL,
    monitor TEXT NOT NULL,
    dismissed DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (dataset, monitor)
)
