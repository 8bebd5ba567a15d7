-- +goose Up
-- Which execution a principal's idempotency key stands for. A row outlives its execution when that is removed, and then stands for none.
CREATE TABLE idempotency_keys (
    tenant_id      TEXT    NOT NULL CHECK (tenant_id <> ''),
    principal_id   TEXT    NOT NULL CHECK (principal_id <> ''),
    key            TEXT    NOT NULL CHECK (key <> ''),
    request_digest TEXT    NOT NULL CHECK (request_digest <> ''),
    execution_id   TEXT    NOT NULL CHECK (execution_id <> ''),
    created_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, principal_id, key)
) STRICT;
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (tenant_id, created_at);
