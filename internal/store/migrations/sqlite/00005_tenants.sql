-- +goose Up
-- Who may do what: tenants with their policy, teams and their members, roles, and what a tenant knows of its principals.
CREATE TABLE tenants (
    tenant_id      TEXT    NOT NULL PRIMARY KEY CHECK (tenant_id <> ''),
    name           TEXT    NOT NULL,
    policy         TEXT    NOT NULL DEFAULT '{}',
    policy_version INTEGER NOT NULL DEFAULT 0,
    created_by     TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    disabled_at    INTEGER
) STRICT;

CREATE TABLE teams (
    tenant_id  TEXT    NOT NULL REFERENCES tenants (tenant_id),
    id         TEXT    NOT NULL CHECK (id <> ''),
    name       TEXT    NOT NULL,
    created_by TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, id)
) STRICT;

CREATE TABLE team_members (
    tenant_id    TEXT    NOT NULL,
    team_id      TEXT    NOT NULL,
    principal_id TEXT    NOT NULL CHECK (principal_id <> ''),
    added_by     TEXT    NOT NULL,
    added_at     INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, team_id, principal_id),
    FOREIGN KEY (tenant_id, team_id) REFERENCES teams (tenant_id, id)
) STRICT;
CREATE INDEX team_members_by_principal ON team_members (tenant_id, principal_id, team_id);

CREATE TABLE roles (
    tenant_id   TEXT    NOT NULL REFERENCES tenants (tenant_id),
    name        TEXT    NOT NULL CHECK (name <> ''),
    description TEXT    NOT NULL,
    scopes      TEXT    NOT NULL,
    updated_by  TEXT    NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, name)
) STRICT;

CREATE TABLE accounts (
    tenant_id     TEXT    NOT NULL REFERENCES tenants (tenant_id),
    id            TEXT    NOT NULL CHECK (id <> ''),
    roles         TEXT    NOT NULL,
    disabled_at   INTEGER,
    registered_by TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    last_seen_at  INTEGER,
    PRIMARY KEY (tenant_id, id)
) STRICT;

-- Who published a revision; a revision that is rolled back to has one row for each of them.
CREATE TABLE publications (
    tenant_id    TEXT    NOT NULL CHECK (tenant_id <> ''),
    revision_id  TEXT    NOT NULL CHECK (revision_id <> ''),
    principal_id TEXT    NOT NULL CHECK (principal_id <> ''),
    published_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, revision_id, principal_id)
) STRICT;

ALTER TABLE api_keys ADD COLUMN roles TEXT NOT NULL DEFAULT '[]';
ALTER TABLE grants ADD COLUMN expiry_noted_at INTEGER;
CREATE INDEX grants_by_expiry ON grants (expires_at) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;
CREATE INDEX executions_by_grant ON executions (tenant_id, grant_id, created_at) WHERE grant_id <> '';

-- What exists already keeps working: every tenant that left a trace, the teams that own skills or are on a key, and who published.
INSERT INTO tenants (tenant_id, name, created_by, created_at)
SELECT known.tenant_id, known.tenant_id, '', CAST(unixepoch() AS INTEGER) * 1000000
FROM (
    SELECT 'default' AS tenant_id UNION SELECT tenant_id FROM skills UNION SELECT tenant_id FROM api_keys
    UNION SELECT tenant_id FROM audit_entries UNION SELECT tenant_id FROM executions
) AS known;
INSERT INTO teams (tenant_id, id, name, created_by, created_at)
SELECT known.tenant_id, known.id, known.id, '', CAST(unixepoch() AS INTEGER) * 1000000
FROM (
    SELECT tenant_id, 'default' AS id FROM tenants
    UNION SELECT tenant_id, team_id FROM skills WHERE team_id <> ''
    UNION SELECT k.tenant_id, t.value FROM api_keys AS k, json_each(k.teams) AS t WHERE k.teams LIKE '[%' AND t.value <> ''
) AS known;
INSERT INTO publications (tenant_id, revision_id, principal_id, published_at)
SELECT e.tenant_id, json_extract(e.detail, '$.revision_id'), e.actor, MIN(e.at)
FROM audit_entries AS e
WHERE e.action = 'skill.publish' AND e.actor <> '' AND COALESCE(json_extract(e.detail, '$.revision_id'), '') <> ''
GROUP BY 1, 2, 3;
