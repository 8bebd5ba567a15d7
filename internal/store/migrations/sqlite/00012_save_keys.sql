-- +goose Up
-- Which revision the idempotency key of a principal's save stands for. A row outlives its revision when that is removed, and then stands for none.
CREATE TABLE save_keys (
    tenant_id      TEXT    NOT NULL CHECK (tenant_id <> ''),
    principal_id   TEXT    NOT NULL CHECK (principal_id <> ''),
    key            TEXT    NOT NULL CHECK (key <> ''),
    request_digest TEXT    NOT NULL CHECK (request_digest <> ''),
    skill_id       TEXT    NOT NULL CHECK (skill_id <> ''),
    revision_id    TEXT    NOT NULL CHECK (revision_id <> ''),
    created_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, principal_id, key)
) STRICT;
CREATE INDEX save_keys_by_time ON save_keys (tenant_id, created_at);
