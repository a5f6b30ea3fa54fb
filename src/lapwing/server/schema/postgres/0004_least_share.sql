ALTER TABLE policies ADD COLUMN least_share TEXT;
