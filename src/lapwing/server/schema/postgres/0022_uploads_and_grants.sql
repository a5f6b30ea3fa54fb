CREATE TABLE uploaded_files (
    folder TEXT NOT NULL,
    name TEXT NOT NULL,
    person TEXT NOT NULL,
    size BIGINT NOT NULL,
    PRIMARY KEY (folder, name)
);
CREATE INDEX uploaded_files_of_person ON uploaded_files (person);
INSERT INTO uploaded_files (folder, name, person, size)
SELECT DISTINCT ON (folder, subject) folder, subject, actor, size
FROM (
    SELECT details::jsonb ->> 'folder' AS folder, subject, actor, (details::jsonb ->> 'size')::BIGINT AS size, sequence
    FROM audit WHERE act = 'upload begun'
) AS begun
ORDER BY folder, subject, sequence DESC;
ALTER TABLE grants ADD COLUMN line INTEGER;
ALTER TABLE access_requests ADD COLUMN line INTEGER
