-- +goose Up
-- Removing a draft asks who else holds its content.
CREATE INDEX components_by_content ON components (sha256);
CREATE INDEX artifacts_by_content ON artifacts (sha256);
