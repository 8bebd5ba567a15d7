-- +goose Up
-- The secrets of tenants. box and wrapped_key are encrypted; nothing here tells a value.
CREATE TABLE secrets (
    tenant_id   TEXT    NOT NULL CHECK (tenant_id <> ''),
    name        TEXT    NOT NULL CHECK (name <> ''),
    box         BLOB    NOT NULL,
    key_id      TEXT    NOT NULL CHECK (key_id <> ''),
    wrapped_key BLOB    NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    updated_by  TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, name)
) STRICT;
