package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
)

// Grant is a grant with its state as of the answer.
type Grant struct {
	sallyport.Grant

	State sallyport.GrantState `json:"state"`
	// ExpiresSoon marks an active grant that ends within the installation's notice.
	ExpiresSoon bool `json:"expires_soon,omitempty"`
}

// GrantList holds grants, newest first.
type GrantList struct {
	Grants []Grant `json:"grants"`
}

// Grants lists the tenant's grants, or those of one skill when ref is not zero.
func (c *Client) Grants(ctx context.Context, ref sallyport.SkillRef) (sallyport.Envelope[GrantList], error) {
	return call[GrantList](ctx, c, get("/v1/grants", refQuery(ref)))
}

type grantBody struct {
	Slug           string               `json:"slug,omitempty"`
	SkillID        sallyport.SkillID    `json:"skill_id,omitempty"`
	TeamID         sallyport.TeamID     `json:"team_id,omitempty"`
	ScriptPath     string               `json:"script_path,omitempty"`
	RevisionID     sallyport.RevisionID `json:"revision_id,omitempty"`
	ExpectedDigest sallyport.Digest     `json:"expected_digest"`
	ExpiresAt      *time.Time           `json:"expires_at,omitempty"`
}

// IssueGrant allows the tenant to run exactly the bytes of ExpectedDigest.
func (c *Client) IssueGrant(ctx context.Context, req access.IssueRequest) (sallyport.Envelope[Grant], error) {
	r, err := post("/v1/grants", nil, grantBody{
		req.Ref.Slug, req.Ref.SkillID, req.Ref.TeamID, req.ScriptPath, req.RevisionID, req.ExpectedDigest, req.ExpiresAt,
	})
	if err != nil {
		return sallyport.Envelope[Grant]{}, err
	}
	return call[Grant](ctx, c, r)
}

// RevokeGrant ends a grant for every run that begins from now on.
func (c *Client) RevokeGrant(ctx context.Context, id sallyport.GrantID) (sallyport.Envelope[Grant], error) {
	path, err := idPath("/v1/grants", id)
	if err != nil {
		return sallyport.Envelope[Grant]{}, err
	}
	return call[Grant](ctx, c, request{method: http.MethodPost, path: path + "/revoke"})
}

// EntryList is a page of the audit trail. NextAfter is the After of the next page; zero on the last.
type EntryList struct {
	Entries   []sallyport.Entry `json:"entries"`
	NextAfter int64             `json:"next_after,omitempty"`
	// Pruned is the signed statement about what retention removed; nil when it removed nothing.
	Pruned *audit.Checkpoint `json:"pruned,omitempty"`
}

// Entries returns a page of the tenant's audit trail.
func (c *Client) Entries(ctx context.Context, filter audit.Filter) (sallyport.Envelope[EntryList], error) {
	query := url.Values{}
	set(query, "actor", filter.Actor)
	set(query, "action", filter.Action)
	set(query, "entity", filter.Entity)
	set(query, "execution_id", filter.ExecutionID)
	if !filter.Since.IsZero() {
		query.Set("since", filter.Since.UTC().Format(time.RFC3339Nano))
	}
	if !filter.Until.IsZero() {
		query.Set("until", filter.Until.UTC().Format(time.RFC3339Nano))
	}
	if filter.After != 0 {
		query.Set("after", strconv.FormatInt(filter.After, 10))
	}
	setTrue(query, "newest_first", filter.NewestFirst)
	setLimit(query, filter.Limit)
	return call[EntryList](ctx, c, get("/v1/audit", query))
}

// VerifyTrail checks the chain of the tenant's audit trail, and its tail against checkpoints from outside when there are any.
func (c *Client) VerifyTrail(ctx context.Context, outside []audit.Checkpoint) (sallyport.Envelope[audit.Verdict], error) {
	if outside == nil {
		return call[audit.Verdict](ctx, c, get("/v1/audit/verify", nil))
	}
	r, err := post("/v1/audit/verify", nil, map[string]any{"checkpoints": outside})
	if err != nil {
		return sallyport.Envelope[audit.Verdict]{}, err
	}
	return call[audit.Verdict](ctx, c, r)
}

// KeyList holds the tenant's keys, without their secrets.
type KeyList struct {
	Keys []sallyport.Key `json:"keys"`
}

// Keys lists the tenant's keys.
func (c *Client) Keys(ctx context.Context) (sallyport.Envelope[KeyList], error) {
	return call[KeyList](ctx, c, get("/v1/keys", nil))
}

type keyBody struct {
	Name      string               `json:"name"`
	Scopes    []sallyport.Scope    `json:"scopes,omitempty"`
	Roles     []sallyport.RoleName `json:"roles,omitempty"`
	Teams     []sallyport.TeamID   `json:"teams,omitempty"`
	ExpiresAt *time.Time           `json:"expires_at,omitempty"`
}

// CreateKey makes a key; the answer is the only one that holds its secret.
func (c *Client) CreateKey(ctx context.Context, req access.KeyRequest) (sallyport.Envelope[access.NewKey], error) {
	r, err := post("/v1/keys", nil, keyBody{req.Name, req.Scopes, req.Roles, req.Teams, req.ExpiresAt})
	if err != nil {
		return sallyport.Envelope[access.NewKey]{}, err
	}
	return call[access.NewKey](ctx, c, r)
}

// KeyRevocation says that a key is revoked.
type KeyRevocation struct {
	KeyID   sallyport.KeyID `json:"key_id"`
	Revoked bool            `json:"revoked"`
}

// RevokeKey ends a key.
func (c *Client) RevokeKey(ctx context.Context, id sallyport.KeyID) (sallyport.Envelope[KeyRevocation], error) {
	path, err := idPath("/v1/keys", id)
	if err != nil {
		return sallyport.Envelope[KeyRevocation]{}, err
	}
	return call[KeyRevocation](ctx, c, request{method: http.MethodPost, path: path + "/revoke"})
}

// Capabilities is what the server is, what it can enforce now, and who it takes the caller for.
type Capabilities struct {
	Version   string                 `json:"version"`
	Executor  sallyport.Capabilities `json:"executor"`
	Principal sallyport.Principal    `json:"principal"`
}

// Capabilities asks the server about itself.
func (c *Client) Capabilities(ctx context.Context) (sallyport.Envelope[Capabilities], error) {
	return call[Capabilities](ctx, c, get("/v1/capabilities", nil))
}

// ServerStatus is ready when the server can serve.
type ServerStatus struct {
	Status string `json:"status"`
}

// Ready returns an error when the server does not answer or cannot serve now. It needs no key.
func (c *Client) Ready(ctx context.Context) (sallyport.Envelope[ServerStatus], error) {
	return call[ServerStatus](ctx, c, get("/readyz", nil))
}

// OpenAPI returns the document that describes the server's HTTP API. It needs no key.
func (c *Client) OpenAPI(ctx context.Context) ([]byte, error) {
	document, _, err := c.bytes(ctx, get("/v1/openapi.json", nil))
	return document, err
}
