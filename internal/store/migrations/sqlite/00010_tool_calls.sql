-- +goose Up
-- One row for each call of an MCP tool. Arguments are redacted before they come here.
CREATE TABLE tool_calls (
    seq          INTEGER PRIMARY KEY,
    tenant_id    TEXT    NOT NULL CHECK (tenant_id <> ''),
    at           INTEGER NOT NULL,
    request_id   TEXT    NOT NULL,
    principal_id TEXT    NOT NULL,
    tool         TEXT    NOT NULL CHECK (tool <> ''),
    arguments    TEXT    NOT NULL,
    code         TEXT    NOT NULL,
    duration_ms  INTEGER NOT NULL,
    execution_id TEXT    NOT NULL,
    trace_id     TEXT    NOT NULL
) STRICT;
CREATE INDEX tool_calls_by_tenant ON tool_calls (tenant_id, seq);
CREATE INDEX tool_calls_by_time ON tool_calls (tenant_id, at);
CREATE INDEX tool_calls_by_execution ON tool_calls (tenant_id, execution_id) WHERE execution_id <> '';
