package store

import (
	"context"
	"database/sql"

	"github.com/sallyport-dev/sallyport"
)

const componentColumns = `c.id, c.path, c.kind, c.media_type, c.size, c.sha256, c.mode,
	c.script_runtime, c.script_input, c.script_schema, c.script_argv, c.script_limits, c.script_secrets, c.script_confirm`

func scanComponent(row scanner) (sallyport.Component, error) {
	return scanComponentAnd(row)
}

// scanComponentContent scans componentColumns and the content of its blob, which is never nil.
func scanComponentContent(row scanner) (sallyport.Component, error) {
	content := []byte{}
	component, err := scanComponentAnd(row, &content)
	if content == nil {
		content = []byte{}
	}
	component.Content = content
	return component, err
}

func scanComponentAnd(row scanner, more ...any) (sallyport.Component, error) {
	var (
		c                            sallyport.Component
		script                       sallyport.ScriptSettings
		runtime, input, schema, argv sql.NullString
	)
	dest := []any{
		&c.ID, &c.Path, &c.Kind, &c.MediaType, &c.Size, &c.SHA256, &c.Mode,
		&runtime, &input, &schema, &argv,
		asJSON{&script.Limits},
		asJSON{&script.Secrets},
		&script.Confirm,
	}
	if err := row.Scan(append(dest, more...)...); err != nil {
		return sallyport.Component{}, err
	}
	if input.Valid {
		script.Runtime, script.Input = runtime.String, sallyport.InputMode(input.String)
		script.InputSchema, script.Argv = rawOf(schema), rawOf(argv)
		c.Script = &script
	}
	return c, nil
}

const (
	selectComponents        = `SELECT ` + componentColumns + ` FROM components AS c WHERE c.tenant_id = ?1 AND c.revision_id = ?2 ORDER BY c.path`
	selectComponentContents = `SELECT ` + componentColumns + `, b.content FROM components AS c JOIN blobs AS b ON b.sha256 = c.sha256
	WHERE c.tenant_id = ?1 AND c.revision_id = ?2 ORDER BY c.path`
	selectComponentContent = `SELECT ` + componentColumns + `, b.content FROM components AS c JOIN blobs AS b ON b.sha256 = c.sha256
	WHERE c.tenant_id = ?1 AND c.revision_id = ?2 AND c.path = ?3`
)

// ComponentContent implements registry.Store. The bytes are verified against their sha256.
func (s *Store) ComponentContent(ctx context.Context, tenant sallyport.TenantID, revision sallyport.RevisionID, path string) (sallyport.Component, error) {
	const op = "store.component_content"
	component, found, err := one(ctx, s.reader.session(), scanComponentContent, selectComponentContent, tenant, revision, path)
	if err == nil && !found {
		err = &sallyport.Error{Op: op, Code: sallyport.CodeComponentNotFound}
	}
	if err == nil {
		err = verify(op, component.Content, component.Size, component.SHA256)
	}
	if err != nil {
		return sallyport.Component{}, s.fault(op, err)
	}
	return component, nil
}

const insertComponent = `INSERT INTO components (tenant_id, revision_id, id, path, kind, media_type, size, sha256, mode,
	script_runtime, script_input, script_schema, script_argv, script_limits, script_secrets, script_confirm)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)`

// addComponent stores a component and its content, which was verified.
func addComponent(ctx context.Context, tx *session, tenant sallyport.TenantID, revision sallyport.RevisionID, c sallyport.Component) error {
	if err := addBlob(ctx, tx, c.SHA256, c.Content); err != nil {
		return err
	}
	args := []any{tenant, revision, c.ID, c.Path, c.Kind, c.MediaType, c.Size, c.SHA256, c.Mode}
	if script := c.Script; script != nil {
		args = append(args, script.Runtime, script.Input, textOrNull(script.InputSchema), textOrNull(script.Argv),
			jsonText(script.Limits), jsonText(script.Secrets), script.Confirm)
	} else {
		args = append(args, nil, nil, nil, nil, nil, nil, false)
	}
	_, err := tx.exec(ctx, insertComponent, args...)
	return err
}
