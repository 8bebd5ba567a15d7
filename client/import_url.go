package client

import (
	"context"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// URLImport is the report of an import from a URL. Its members beside Source are those of any import.
type URLImport struct {
	registry.ImportReport

	Source registry.Source `json:"source"`
}

type importURLBody struct {
	URL      string           `json:"url"`
	TeamID   sallyport.TeamID `json:"team_id,omitempty"`
	Personal bool             `json:"personal,omitempty"`
	Publish  bool             `json:"publish,omitempty"`
	DryRun   bool             `json:"dry_run,omitempty"`
	Message  string           `json:"message,omitempty"`
}

// ImportURL lets the server fetch and import what a URL serves. FEATURE_DISABLED where it may not.
func (c *Client) ImportURL(ctx context.Context, url string, opts registry.ImportOptions) (sallyport.Envelope[URLImport], error) {
	r, err := post("/v1/import/url", nil, importURLBody{url, opts.TeamID, opts.Personal, opts.Publish, opts.DryRun, opts.Message})
	if err != nil {
		return sallyport.Envelope[URLImport]{}, err
	}
	if opts.Progress != nil {
		return callLines[URLImport](ctx, c, r, "import_progress", opts.Progress)
	}
	return call[URLImport](ctx, c, r)
}
