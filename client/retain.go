package client

import (
	"context"
	"net/http"

	"github.com/sallyport-dev/sallyport"
)

// RevisionRemoval says which revision is gone.
type RevisionRemoval struct {
	RevisionID sallyport.RevisionID `json:"revision_id"`
	Number     int                  `json:"number"`
	Digest     sallyport.Digest     `json:"digest"`
}

// DeleteRevision removes a draft that nothing names. REVISION_CONFLICT says what names it.
func (c *Client) DeleteRevision(ctx context.Context, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Envelope[RevisionRemoval], error) {
	path, query, err := skillPath(ref)
	if err == nil && id == "" {
		err = invalid("name a revision by its id")
	}
	if err != nil {
		return sallyport.Envelope[RevisionRemoval]{}, err
	}
	return call[RevisionRemoval](ctx, c, request{method: http.MethodDelete, path: path + "/revisions" + segment(id), query: query})
}
