package httpapi

import (
	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// The headers that say what an archive holds.
const (
	revisionIDHeader     = "Sallyport-Revision-Id"
	revisionDigestHeader = "Sallyport-Revision-Digest"
)

func exportRevision(c *call, p sallyport.Principal) (answer, error) {
	ref, id := c.skillRef(c.query.text("team_id")), sallyport.RevisionID(c.query.text("revision_id"))
	export, err := c.api.cfg.Skills.Export(c.ctx(), p, ref, id, registry.ArchiveFormat(c.query.text("format")))
	if err != nil {
		return answer{}, err
	}
	bytes, err := newRaw(export.Name, export.MediaType, sallyport.DigestOf(export.Archive).Hex(), export.Archive)
	if err != nil {
		return answer{}, err
	}
	bytes.header = map[string]string{
		revisionIDHeader: string(export.Revision.ID), revisionDigestHeader: string(export.Revision.Digest),
	}
	return answer{raw: bytes}, nil
}
