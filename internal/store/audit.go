package store

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/canonical"
)

// pageOfEntries is how many entries EachEntry holds at a time.
const pageOfEntries = 500

const entryColumns = `tenant_id, sequence, at, actor, action, entity, execution_id, detail, previous_hash, hash`

func scanEntry(row scanner) (sallyport.Entry, error) {
	var (
		entry  sallyport.Entry
		at     int64
		detail string
	)
	err := row.Scan(&entry.TenantID, &entry.Sequence, &at, &entry.Actor, &entry.Action, &entry.Entity, &entry.ExecutionID, &detail,
		&entry.PreviousHash, &entry.Hash)
	entry.At, entry.Detail = timeOf(at), json.RawMessage(detail)
	return entry, err
}

const (
	selectHead  = `SELECT ` + entryColumns + ` FROM audit_entries WHERE tenant_id = ?1 ORDER BY sequence DESC LIMIT 1`
	insertEntry = `INSERT INTO audit_entries (` + entryColumns + `) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`
)

// prepareEntry gives an entry the form in which it is hashed and stored: what is read back is what was hashed.
func prepareEntry(op string, tenant sallyport.TenantID, entry sallyport.Entry) (sallyport.Entry, error) {
	if tenant == "" || entry.Action == "" {
		return entry, defect(op, "an entry needs a tenant and an action")
	}
	detail := entry.Detail
	if len(detail) == 0 {
		detail = json.RawMessage(`{}`)
	}
	form, err := canonical.JSON(detail)
	if err != nil {
		return entry, &sallyport.Error{Op: op, Code: sallyport.CodeAuditUnavailable, Message: "the audit trail cannot hold this entry: its detail has no canonical JSON form", Err: err}
	}
	if !bytes.HasPrefix(form, []byte("{")) {
		return entry, defect(op, "the detail of an entry is a JSON object")
	}
	entry.TenantID = tenant
	entry.At = timeOf(micros(entry.At))
	entry.Entity = cleanText(entry.Entity)
	entry.Actor = sallyport.PrincipalID(cleanText(string(entry.Actor)))
	entry.Detail = form
	return entry, nil
}

// cleanText replaces what a database may refuse to hold: an entry about a hostile name must still be written.
func cleanText(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// appendEntry links a prepared entry to the end of its tenant's chain.
func appendEntry(ctx context.Context, tx *session, entry sallyport.Entry) (sallyport.Entry, error) {
	head, _, err := one(ctx, tx, scanEntry, selectHead, entry.TenantID)
	if err != nil {
		return sallyport.Entry{}, err
	}
	entry.Sequence, entry.PreviousHash = head.Sequence+1, head.Hash
	if entry.Hash, err = canonical.EntryHash(entry); err != nil {
		return sallyport.Entry{}, err
	}
	_, err = tx.exec(ctx, insertEntry, entry.TenantID, entry.Sequence, micros(entry.At), entry.Actor, entry.Action, entry.Entity,
		entry.ExecutionID, string(entry.Detail), entry.PreviousHash, entry.Hash)
	return entry, err
}

// AppendEntry implements audit.Store.
func (s *Store) AppendEntry(ctx context.Context, tenant sallyport.TenantID, entry sallyport.Entry) (sallyport.Entry, error) {
	return s.append(ctx, "store.append_entry", tenant, entry)
}

func (s *Store) append(ctx context.Context, op string, tenant sallyport.TenantID, entry sallyport.Entry) (sallyport.Entry, error) {
	entry, err := prepareEntry(op, tenant, entry)
	if err != nil {
		return sallyport.Entry{}, err
	}
	var stored sallyport.Entry
	err = s.writer.do(ctx, func(ctx context.Context, tx *session) error {
		var err error
		stored, err = appendEntry(ctx, tx, entry)
		return err
	})
	if err != nil {
		return sallyport.Entry{}, s.auditFault(op, err)
	}
	return stored, nil
}

// The conditions of a filter: ?2 action, ?3 entity, ?4 since (inclusive), ?5 until (exclusive), ?8 actor; empty or zero selects all.
const entryConditions = ` AND (?2 = '' OR action = ?2) AND (?3 = '' OR entity = ?3) AND (?4 = 0 OR at >= ?4) AND (?5 = 0 OR at < ?5) AND (?8 = '' OR actor = ?8)`

const (
	selectEntries = `SELECT ` + entryColumns + ` FROM audit_entries WHERE tenant_id = ?1 AND sequence > ?6` + entryConditions + `
	ORDER BY sequence LIMIT ?7`
	selectEntriesNewest = `SELECT ` + entryColumns + ` FROM audit_entries WHERE tenant_id = ?1 AND (?6 = 0 OR sequence < ?6)` + entryConditions + `
	ORDER BY sequence DESC LIMIT ?7`
	selectEntriesOfExecution = `SELECT ` + entryColumns + ` FROM audit_entries WHERE tenant_id = ?1 AND execution_id = ?9 AND execution_id <> '' AND sequence > ?6` + entryConditions + `
	ORDER BY sequence LIMIT ?7`
	selectEntriesOfExecutionNewest = `SELECT ` + entryColumns + ` FROM audit_entries WHERE tenant_id = ?1 AND execution_id = ?9 AND execution_id <> '' AND (?6 = 0 OR sequence < ?6)` + entryConditions + `
	ORDER BY sequence DESC LIMIT ?7`
)

// Entries implements audit.Store. Since is inclusive, Until exclusive.
func (s *Store) Entries(ctx context.Context, tenant sallyport.TenantID, filter audit.Filter) ([]sallyport.Entry, error) {
	query := selectEntries
	switch {
	case filter.ExecutionID != "" && filter.NewestFirst:
		query = selectEntriesOfExecutionNewest
	case filter.ExecutionID != "":
		query = selectEntriesOfExecution
	case filter.NewestFirst:
		query = selectEntriesNewest
	}
	limit := filter.Limit
	if limit <= 0 {
		limit = 100
	}
	args := []any{
		tenant, filter.Action, filter.Entity, microsOrZero(filter.Since), microsOrZero(filter.Until), max(filter.After, 0), min(limit, maxPage),
		filter.Actor,
	}
	if filter.ExecutionID != "" {
		args = append(args, filter.ExecutionID)
	}
	entries, err := all(ctx, s.reader.session(), scanEntry, query, args...)
	return entries, s.fault("store.entries", err)
}

func microsOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return micros(t)
}

// EachEntry implements audit.Store. It reads page by page, so that a slow fn holds no connection; entries that are
// appended meanwhile are seen too.
func (s *Store) EachEntry(ctx context.Context, tenant sallyport.TenantID, fn func(sallyport.Entry) error) error {
	for after := int64(0); ; {
		page, err := s.Entries(ctx, tenant, audit.Filter{After: after, Limit: pageOfEntries})
		if err != nil {
			return err
		}
		for _, entry := range page {
			if err := fn(entry); err != nil {
				return err
			}
		}
		if len(page) < pageOfEntries {
			return nil
		}
		after = page[len(page)-1].Sequence
	}
}

// Head implements audit.Store.
func (s *Store) Head(ctx context.Context, tenant sallyport.TenantID) (count int64, hash sallyport.Digest, err error) {
	head, _, err := one(ctx, s.reader.session(), scanEntry, selectHead, tenant)
	return head.Sequence, head.Hash, s.fault("store.head", err)
}

// selectTenants is about no single tenant; it leaps from one to the next over the primary key.
const selectTenants = `WITH RECURSIVE each_tenant (id) AS (
	SELECT MIN(tenant_id) FROM audit_entries
	UNION ALL SELECT (SELECT MIN(e.tenant_id) FROM audit_entries AS e WHERE e.tenant_id > each_tenant.id) FROM each_tenant WHERE each_tenant.id IS NOT NULL
	) SELECT id FROM each_tenant WHERE id IS NOT NULL`

// Tenants implements audit.Store, in byte order.
func (s *Store) Tenants(ctx context.Context) ([]sallyport.TenantID, error) {
	tenants, err := all(ctx, s.reader.session(), scalar[sallyport.TenantID], selectTenants)
	return tenants, s.fault("store.tenants", err)
}
