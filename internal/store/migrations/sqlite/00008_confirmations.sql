-- +goose Up
-- Questions whether a run may begin, to a person who is not there: who asks, for which request and which bytes, and what was decided.
CREATE TABLE confirmations (
    tenant_id       TEXT    NOT NULL CHECK (tenant_id <> ''),
    id              TEXT    NOT NULL CHECK (id <> ''),
    principal_id    TEXT    NOT NULL CHECK (principal_id <> ''),
    request_digest  TEXT    NOT NULL CHECK (request_digest <> ''),
    revision_digest TEXT    NOT NULL CHECK (revision_digest <> ''),
    skill_id        TEXT    NOT NULL,
    slug            TEXT    NOT NULL,
    revision_id     TEXT    NOT NULL,
    script_path     TEXT    NOT NULL,
    request         TEXT    NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'used')),
    created_at      INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL,
    decided_at      INTEGER,
    decided_by      TEXT    NOT NULL,
    in_client       INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX confirmations_of_request ON confirmations (tenant_id, principal_id, request_digest, revision_digest);
CREATE INDEX confirmations_by_time ON confirmations (tenant_id, expires_at);

-- Whether a script wants a person's yes for each run.
ALTER TABLE components ADD COLUMN script_confirm INTEGER NOT NULL DEFAULT 0;
