-- +goose Up
-- What a run left and is not kept any more: the record still says what it was.
CREATE TABLE expired_artifacts (
    tenant_id    TEXT    NOT NULL CHECK (tenant_id <> ''),
    execution_id TEXT    NOT NULL,
    position     INTEGER NOT NULL,
    path         TEXT    NOT NULL CHECK (path <> ''),
    size         INTEGER NOT NULL CHECK (size >= 0),
    sha256       TEXT    NOT NULL,
    media_type   TEXT    NOT NULL,
    uri          TEXT    NOT NULL,
    expired_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, execution_id, path),
    FOREIGN KEY (tenant_id, execution_id) REFERENCES executions (tenant_id, id)
) STRICT;

-- Revisions that are gone, so that nothing which was under way names one, and no number is used again.
CREATE TABLE removed_revisions (
    tenant_id TEXT    NOT NULL CHECK (tenant_id <> ''),
    id        TEXT    NOT NULL CHECK (id <> ''),
    skill_id  TEXT    NOT NULL,
    number    INTEGER NOT NULL CHECK (number > 0),
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX removed_revisions_of_skill ON removed_revisions (tenant_id, skill_id, number);

-- A skill that somebody deleted is archived until it is purged.
ALTER TABLE skills ADD COLUMN deleted_at INTEGER;

CREATE INDEX idempotency_keys_by_execution ON idempotency_keys (tenant_id, execution_id);
CREATE INDEX executions_by_revision ON executions (tenant_id, skill_id, revision_id);
