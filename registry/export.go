package registry

import (
	"bytes"
	"cmp"
	"context"

	"github.com/sallyport-dev/sallyport"
)

// Export is a revision as an archive. The revision carries no content.
type Export struct {
	Skill    sallyport.Skill
	Revision sallyport.Revision
	// Name is a name for the file: the slug and the format.
	Name      string
	MediaType string
	Archive   []byte
}

// Export returns a revision as an archive with one folder named after the slug; an empty id means the published revision, else
// the latest, an empty format zip. Equal revisions of one slug give equal bytes, and importing them gives the same digest. Needs memory:read.
// An unknown format is INVALID_ARGUMENT.
func (s *Service) Export(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID, format ArchiveFormat) (Export, error) {
	const op = "registry.export"
	format = cmp.Or(format, ArchiveZip)
	media := map[ArchiveFormat]string{ArchiveZip: "application/zip", ArchiveTarGz: "application/gzip"}[format]
	if media == "" {
		return Export{}, sallyport.Errorf(op, sallyport.CodeInvalidArgument, "the format is neither zip nor tar.gz")
	}
	skill, err := s.readable(ctx, p, ref)
	if err != nil {
		return Export{}, err
	}
	revision, err := s.ResolveRevision(ctx, p, skill, id)
	if err != nil {
		return Export{}, err
	}
	var archive bytes.Buffer
	if err := WriteArchive(&archive, revision, format, skill.Slug); err != nil {
		return Export{}, err
	}
	return Export{
		Skill: skill, Revision: withoutContent(revision), Name: skill.Slug + "." + string(format), MediaType: media, Archive: archive.Bytes(),
	}, nil
}
