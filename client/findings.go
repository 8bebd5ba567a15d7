package client

import (
	"context"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// Findings returns what the static rules find in a revision.
func (c *Client) Findings(ctx context.Context, ref sallyport.SkillRef, req registry.FindingsRequest) (sallyport.Envelope[registry.Findings], error) {
	path, query, err := skillPath(ref)
	if err != nil {
		return sallyport.Envelope[registry.Findings]{}, err
	}
	set(query, "revision_id", req.RevisionID)
	set(query, "exclude", strings.Join(req.Exclude, ","))
	return call[registry.Findings](ctx, c, get(path+"/findings", query))
}

// PublishOverride publishes a revision that is not clean, where the server demands clean ones, for a reason that goes on record. An empty id
// means the latest revision.
func (c *Client) PublishOverride(ctx context.Context, ref sallyport.SkillRef, id sallyport.RevisionID, reason string) (sallyport.Envelope[Publication], error) {
	if reason == "" {
		return sallyport.Envelope[Publication]{}, invalid("an override needs a reason")
	}
	body := map[string]string{"override": reason}
	if id != "" {
		body["revision_id"] = string(id)
	}
	return change[Publication](ctx, c, ref, "/publish", body)
}
