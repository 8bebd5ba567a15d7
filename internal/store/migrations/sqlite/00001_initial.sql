-- +goose Up
-- Every table but blobs begins with the tenant. Text compares byte by byte (BINARY). Times are microseconds since
-- 1970 in UTC.

CREATE TABLE blobs (
    sha256  TEXT    NOT NULL PRIMARY KEY CHECK (length(sha256) = 64),
    size    INTEGER NOT NULL CHECK (size >= 0),
    content BLOB    NOT NULL
) STRICT;

CREATE TABLE skills (
    seq                   INTEGER PRIMARY KEY,
    tenant_id             TEXT    NOT NULL CHECK (tenant_id <> ''),
    id                    TEXT    NOT NULL CHECK (id <> ''),
    team_id               TEXT    NOT NULL,
    owner_id              TEXT    NOT NULL,
    slug                  TEXT    NOT NULL CHECK (slug <> ''),
    name                  TEXT    NOT NULL,
    description           TEXT    NOT NULL,
    published_revision_id TEXT    NOT NULL,
    latest_revision_id    TEXT    NOT NULL,
    archived_at           INTEGER,
    created_at            INTEGER NOT NULL,
    updated_at            INTEGER NOT NULL,
    UNIQUE (tenant_id, id),
    CHECK ((team_id = '') <> (owner_id = ''))
) STRICT;
CREATE UNIQUE INDEX skills_of_team ON skills (tenant_id, team_id, slug) WHERE team_id <> '';
CREATE UNIQUE INDEX skills_of_owner ON skills (tenant_id, owner_id, slug) WHERE owner_id <> '';
CREATE INDEX skills_by_slug ON skills (tenant_id, slug, id);

-- One row for each skill, by skills.seq. The texts themselves are not kept twice.
CREATE VIRTUAL TABLE skill_search USING fts5 (
    slug, name, description, paths, instructions,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TABLE revisions (
    tenant_id    TEXT    NOT NULL CHECK (tenant_id <> ''),
    id           TEXT    NOT NULL CHECK (id <> ''),
    skill_id     TEXT    NOT NULL,
    number       INTEGER NOT NULL CHECK (number > 0),
    state        TEXT    NOT NULL CHECK (state IN ('draft', 'published')),
    digest       TEXT    NOT NULL,
    frontmatter  TEXT,
    message      TEXT    NOT NULL,
    author       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    published_at INTEGER,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, skill_id, number),
    FOREIGN KEY (tenant_id, skill_id) REFERENCES skills (tenant_id, id)
) STRICT;

-- script_input is NULL for a component without script settings.
CREATE TABLE components (
    tenant_id      TEXT    NOT NULL CHECK (tenant_id <> ''),
    revision_id    TEXT    NOT NULL,
    path           TEXT    NOT NULL CHECK (path <> ''),
    id             TEXT    NOT NULL CHECK (id <> ''),
    kind           TEXT    NOT NULL,
    media_type     TEXT    NOT NULL,
    size           INTEGER NOT NULL CHECK (size >= 0),
    sha256         TEXT    NOT NULL REFERENCES blobs (sha256),
    mode           INTEGER NOT NULL,
    script_runtime TEXT,
    script_input   TEXT,
    script_schema  TEXT,
    script_argv    TEXT,
    script_limits  TEXT,
    script_secrets TEXT,
    PRIMARY KEY (tenant_id, revision_id, path),
    UNIQUE (tenant_id, revision_id, id),
    FOREIGN KEY (tenant_id, revision_id) REFERENCES revisions (tenant_id, id)
) STRICT;

CREATE TABLE grants (
    seq         INTEGER PRIMARY KEY,
    tenant_id   TEXT    NOT NULL CHECK (tenant_id <> ''),
    id          TEXT    NOT NULL CHECK (id <> ''),
    skill_id    TEXT    NOT NULL CHECK (skill_id <> ''),
    slug        TEXT    NOT NULL,
    script_path TEXT    NOT NULL,
    pin         TEXT    NOT NULL CHECK (pin <> ''),
    revision_id TEXT    NOT NULL,
    issued_by   TEXT    NOT NULL,
    issued_at   INTEGER NOT NULL,
    expires_at  INTEGER,
    revoked_at  INTEGER,
    revoked_by  TEXT    NOT NULL,
    UNIQUE (tenant_id, id)
) STRICT;
CREATE INDEX grants_by_skill ON grants (tenant_id, skill_id, issued_at);
CREATE INDEX grants_by_time ON grants (tenant_id, issued_at);

CREATE TABLE api_keys (
    seq          INTEGER PRIMARY KEY,
    tenant_id    TEXT    NOT NULL CHECK (tenant_id <> ''),
    id           TEXT    NOT NULL CHECK (id <> ''),
    principal_id TEXT    NOT NULL CHECK (principal_id <> ''),
    name         TEXT    NOT NULL,
    prefix       TEXT    NOT NULL,
    scopes       TEXT    NOT NULL,
    teams        TEXT    NOT NULL,
    created_by   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    secret_hash  BLOB    NOT NULL UNIQUE CHECK (length(secret_hash) = 32),
    UNIQUE (tenant_id, id)
) STRICT;

-- Streams are bytes: a script may write anything.
CREATE TABLE executions (
    tenant_id         TEXT    NOT NULL CHECK (tenant_id <> ''),
    id                TEXT    NOT NULL CHECK (id <> ''),
    principal_id      TEXT    NOT NULL,
    skill_id          TEXT    NOT NULL,
    slug              TEXT    NOT NULL,
    revision_id       TEXT    NOT NULL,
    revision_digest   TEXT    NOT NULL,
    script_path       TEXT    NOT NULL,
    runtime           TEXT    NOT NULL,
    status            TEXT    NOT NULL CHECK (status <> ''),
    exit_code         INTEGER,
    signal            INTEGER NOT NULL,
    signal_name       TEXT    NOT NULL,
    limit_name        TEXT    NOT NULL,
    error_kind        TEXT    NOT NULL,
    error_message     TEXT    NOT NULL,
    stdout            BLOB    NOT NULL,
    stderr            BLOB    NOT NULL,
    stdout_truncated  INTEGER NOT NULL,
    stderr_truncated  INTEGER NOT NULL,
    stdout_bytes      INTEGER NOT NULL,
    stderr_bytes      INTEGER NOT NULL,
    encoding_notes    TEXT    NOT NULL,
    output_data       BLOB,
    output_data_note  TEXT    NOT NULL,
    artifacts_lost    INTEGER NOT NULL,
    artifact_notes    TEXT    NOT NULL,
    duration_ms       INTEGER NOT NULL,
    queue_ms          INTEGER NOT NULL,
    memory_peak_bytes INTEGER,
    cpu_time_ms       INTEGER,
    oom_kills         INTEGER NOT NULL,
    isolation         TEXT    NOT NULL,
    limits            TEXT    NOT NULL,
    grant_id          TEXT    NOT NULL,
    trace_id          TEXT    NOT NULL,
    created_at        INTEGER NOT NULL,
    started_at        INTEGER,
    finished_at       INTEGER,
    PRIMARY KEY (tenant_id, id)
) STRICT;
CREATE INDEX executions_by_time ON executions (tenant_id, created_at, id);
CREATE INDEX executions_by_skill ON executions (tenant_id, skill_id, created_at, id);
CREATE INDEX executions_open ON executions (created_at) WHERE status IN ('queued', 'running');

CREATE TABLE artifacts (
    tenant_id    TEXT    NOT NULL CHECK (tenant_id <> ''),
    execution_id TEXT    NOT NULL,
    position     INTEGER NOT NULL,
    path         TEXT    NOT NULL CHECK (path <> ''),
    size         INTEGER NOT NULL CHECK (size >= 0),
    sha256       TEXT    NOT NULL REFERENCES blobs (sha256),
    media_type   TEXT    NOT NULL,
    uri          TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, execution_id, path),
    FOREIGN KEY (tenant_id, execution_id) REFERENCES executions (tenant_id, id)
) STRICT;

CREATE TABLE audit_entries (
    tenant_id     TEXT    NOT NULL CHECK (tenant_id <> ''),
    sequence      INTEGER NOT NULL CHECK (sequence > 0),
    at            INTEGER NOT NULL,
    actor         TEXT    NOT NULL,
    action        TEXT    NOT NULL,
    entity        TEXT    NOT NULL,
    execution_id  TEXT    NOT NULL,
    detail        TEXT    NOT NULL,
    previous_hash TEXT    NOT NULL,
    hash          TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, sequence)
) STRICT;
CREATE INDEX audit_entries_by_execution ON audit_entries (tenant_id, execution_id, sequence) WHERE execution_id <> '';

-- signed_at is text, letter for letter what was signed.
CREATE TABLE audit_checkpoints (
    seq        INTEGER PRIMARY KEY,
    tenant_id  TEXT    NOT NULL CHECK (tenant_id <> ''),
    entries    INTEGER NOT NULL,
    head       TEXT    NOT NULL,
    signed_at  TEXT    NOT NULL,
    public_key TEXT    NOT NULL,
    signature  TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_checkpoints_by_tenant ON audit_checkpoints (tenant_id, entries, seq);
