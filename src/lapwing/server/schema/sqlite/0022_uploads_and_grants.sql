CREATE TABLE uploaded_files (
    folder TEXT NOT NULL,
    name TEXT NOT NULL,
    person TEXT NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (folder, name)
);
CREATE INDEX uploaded_files_of_person ON uploaded_files (person);
INSERT OR REPLACE INTO uploaded_files (folder, name, person, size)
SELECT json_extract(details, '$.folder'), subject, actor, json_extract(details, '$.size')
FROM audit WHERE act = 'upload begun' ORDER BY sequence;
ALTER TABLE grants ADD COLUMN line INTEGER;
ALTER TABLE access_requests ADD COLUMN line INTEGER
