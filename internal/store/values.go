package store

import (
	"database/sql"
	"encoding/json"
	"time"
)

// A time is stored as microseconds since 1970; a finer fraction is cut off.

func micros(t time.Time) int64 { return t.UnixMicro() }

func microsOrNull(t *time.Time) sql.NullInt64 {
	if t == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: true}
}

func timeOf(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

func timeOrNil(micros sql.NullInt64) *time.Time {
	if !micros.Valid {
		return nil
	}
	t := timeOf(micros.Int64)
	return &t
}

func pointerOf(n sql.NullInt64) *int64 {
	if !n.Valid {
		return nil
	}
	return &n.Int64
}

func nullInt[T int | int64](n *T) sql.NullInt64 {
	if n == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: int64(*n), Valid: true}
}

// raw JSON is stored byte for byte, absent as NULL.

func textOrNull(raw json.RawMessage) sql.NullString {
	return sql.NullString{String: string(raw), Valid: raw != nil}
}

func rawOf(text sql.NullString) json.RawMessage {
	if !text.Valid {
		return nil
	}
	return json.RawMessage(text.String)
}

// jsonText stores a value that is read and written as a whole. The types are this product's own, so that it cannot
// fail; if it does, NULL meets a NOT NULL column and the write fails.
func jsonText(value any) sql.NullString {
	text, err := json.Marshal(value)
	return sql.NullString{String: string(text), Valid: err == nil}
}

// asJSON scans what jsonText wrote; NULL leaves the value alone.
type asJSON struct{ into any }

// Scan implements sql.Scanner.
func (a asJSON) Scan(value any) error {
	var text sql.NullString
	if err := text.Scan(value); err != nil || !text.Valid {
		return err
	}
	return json.Unmarshal([]byte(text.String), a.into)
}
