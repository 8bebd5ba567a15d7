package client

import (
	"context"
	"crypto/sha256"
	"encoding/base64"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// Export is a revision as an archive.
type Export struct {
	Archive    []byte
	RevisionID sallyport.RevisionID
	// Digest is the revision's, not the archive's.
	Digest sallyport.Digest
}

// Export returns a revision as an archive, checked against the digest that came with it; an empty id means the published
// revision, else the latest, an empty format zip.
func (c *Client) Export(ctx context.Context, ref sallyport.SkillRef, id sallyport.RevisionID, format registry.ArchiveFormat) (Export, error) {
	path, query, err := skillPath(ref)
	if err != nil {
		return Export{}, err
	}
	set(query, "revision_id", id)
	set(query, "format", format)
	content, header, err := c.bytes(ctx, get(path+"/export", query))
	if err != nil {
		return Export{}, err
	}
	sum := sha256.Sum256(content)
	if header.Get("Content-Digest") != "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":" {
		return Export{}, errDigest()
	}
	digest, err := sallyport.ParseDigest(header.Get("Sallyport-Revision-Digest"))
	if err != nil {
		return Export{}, errDigest()
	}
	return Export{content, sallyport.RevisionID(header.Get("Sallyport-Revision-Id")), digest}, nil
}

// RevisionDiff is what differs between two revisions. GrantsNotCovering are the active grants that do not allow the later one;
// it is nil when the caller may not see grants.
type RevisionDiff struct {
	registry.RevisionDiff

	GrantsNotCovering []Grant `json:"grants_not_covering,omitempty"`
}

// Diff compares two revisions. An empty to means the latest; an empty from the published one, else the one before to.
func (c *Client) Diff(ctx context.Context, ref sallyport.SkillRef, from, to sallyport.RevisionID) (sallyport.Envelope[RevisionDiff], error) {
	path, query, err := skillPath(ref)
	if err != nil {
		return sallyport.Envelope[RevisionDiff]{}, err
	}
	set(query, "from", from)
	set(query, "to", to)
	return call[RevisionDiff](ctx, c, get(path+"/diff", query))
}
