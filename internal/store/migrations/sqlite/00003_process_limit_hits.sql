-- +goose Up
-- How often the process limit refused a run another process.
ALTER TABLE executions ADD COLUMN process_limit_hits INTEGER NOT NULL DEFAULT 0;
