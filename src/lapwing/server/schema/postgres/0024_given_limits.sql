ALTER TABLE access_requests ADD COLUMN given TEXT
