ALTER TABLE browser_sessions ADD COLUMN toast TEXT;
ALTER TABLE saved ADD COLUMN removed REAL
