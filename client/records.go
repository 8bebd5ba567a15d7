package client

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/records"
	"github.com/sallyport-dev/sallyport/registry"
)

// DeleteSkill archives a skill until it is purged; Restore undoes it. The view holds the skill alone.
func (c *Client) DeleteSkill(ctx context.Context, ref sallyport.SkillRef) (sallyport.Envelope[registry.SkillView], error) {
	path, query, err := skillPath(ref)
	if err != nil {
		return sallyport.Envelope[registry.SkillView]{}, err
	}
	return call[registry.SkillView](ctx, c, request{method: http.MethodDelete, path: path, query: query})
}

// PurgeSkill removes an archived skill for good, apart from what a grant or an execution names; with dryRun it says what would go.
func (c *Client) PurgeSkill(ctx context.Context, ref sallyport.SkillRef, dryRun bool) (sallyport.Envelope[registry.PurgeReport], error) {
	path, query, err := skillPath(ref)
	if err != nil {
		return sallyport.Envelope[registry.PurgeReport]{}, err
	}
	r, err := post(path+"/purge", query, map[string]bool{"dry_run": dryRun})
	if err != nil {
		return sallyport.Envelope[registry.PurgeReport]{}, err
	}
	return call[registry.PurgeReport](ctx, c, r)
}

// PurgeExecutions removes the tenant's executions that were made before an instant.
func (c *Client) PurgeExecutions(ctx context.Context, req records.PurgeRequest) (sallyport.Envelope[records.PurgeResult], error) {
	r, err := post("/v1/executions/purge", nil, struct {
		Before time.Time `json:"before"`
		DryRun bool      `json:"dry_run"`
	}{req.Before.UTC(), req.DryRun})
	if err != nil {
		return sallyport.Envelope[records.PurgeResult]{}, err
	}
	return call[records.PurgeResult](ctx, c, r)
}

// ToolCallList is a page of tool calls. NextBelow is the Below of the next page; zero on the last.
type ToolCallList struct {
	ToolCalls []audit.ToolCall `json:"tool_calls"`
	NextBelow int64            `json:"next_below,omitempty"`
}

// ToolCalls lists calls of MCP tools, newest first.
func (c *Client) ToolCalls(ctx context.Context, filter audit.CallFilter) (sallyport.Envelope[ToolCallList], error) {
	query := url.Values{}
	set(query, "tool", filter.Tool)
	set(query, "principal_id", filter.PrincipalID)
	set(query, "code", filter.Code)
	set(query, "execution_id", filter.ExecutionID)
	if !filter.Since.IsZero() {
		query.Set("since", filter.Since.UTC().Format(time.RFC3339Nano))
	}
	if !filter.Until.IsZero() {
		query.Set("until", filter.Until.UTC().Format(time.RFC3339Nano))
	}
	if filter.Below != 0 {
		query.Set("below", strconv.FormatInt(filter.Below, 10))
	}
	setLimit(query, filter.Limit)
	return call[ToolCallList](ctx, c, get("/v1/tool-calls", query))
}

// Backup writes a backup of the whole installation to w, as it comes; with keys its keys are in it. Only the data folder's own socket
// gives one. An error after the first byte leaves w with a part, which a check of the backup shows.
func (c *Client) Backup(ctx context.Context, keys bool, w io.Writer) (int64, error) {
	query := url.Values{}
	setTrue(query, "keys", keys)
	resp, err := c.open(ctx, get("/v1/backup", query))
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return 0, c.refusal(ctx, resp)
	}
	n, err := io.Copy(w, resp.Body)
	if err != nil {
		return n, &sallyport.Error{Op: "client.backup", Code: sallyport.CodeStoreUnavailable, Message: "the backup broke off; the server's log says why", Err: err}
	}
	return n, nil
}

// refusal reads the answer of a call that was not granted.
func (c *Client) refusal(ctx context.Context, resp *http.Response) error {
	got, err := c.readAll(ctx, resp)
	if err != nil {
		return err
	}
	var envelope sallyport.Envelope[json.RawMessage]
	if !got.isEnvelope() || json.Unmarshal(got.body, &envelope) != nil || envelope.Error == nil {
		return got.strange()
	}
	return public(envelope.Error, got.status)
}
