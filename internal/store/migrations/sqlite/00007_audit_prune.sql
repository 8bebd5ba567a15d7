-- +goose Up
-- 1 for the signed statement that the entries up to this one were removed.
ALTER TABLE audit_checkpoints ADD COLUMN pruned INTEGER NOT NULL DEFAULT 0 CHECK (pruned IN (0, 1));
CREATE INDEX audit_checkpoints_pruned ON audit_checkpoints (tenant_id, entries) WHERE pruned = 1;
