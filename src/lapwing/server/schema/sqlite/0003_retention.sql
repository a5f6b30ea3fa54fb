CREATE INDEX answers_bought_together ON answers (substr(id, 1, 32));
ALTER TABLE answers ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;
CREATE INDEX answers_kept ON answers (created) WHERE dropped = 0;
