-- +goose Up
-- A search asks for the newest skill of the tenant.
CREATE INDEX skills_by_creation ON skills (tenant_id, created_at);
