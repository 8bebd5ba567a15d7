package httpapi

import (
	"errors"
	"io"
	"io/fs"
	"net/http"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// importTree takes an archive of one skill or of a tree of them.
func importTree(c *call, p sallyport.Principal) (answer, error) {
	opts := registry.ImportOptions{
		TeamID:   sallyport.TeamID(c.query.text("team_id")),
		Personal: c.query.boolean("personal"),
		Publish:  c.query.boolean("publish"),
		DryRun:   c.query.boolean("dry_run"),
		Message:  c.query.text("message"),
	}
	if err := c.query.err; err != nil {
		return answer{}, err
	}
	// The service checks the scope too; here it keeps a stranger's gigabyte off the disk.
	if err := p.Require("httpapi.import", sallyport.ScopeMemoryWrite); err != nil {
		return answer{}, err
	}
	select {
	case c.api.imports <- struct{}{}:
		defer func() { <-c.api.imports }()
	default:
		return answer{}, sallyport.Errorf("httpapi.import", sallyport.CodeRateLimited,
			"%d uploads are under way already; send it again in a moment", importsAtOnce)
	}
	tree, err := c.upload()
	if err != nil {
		return answer{}, c.uploadFault(err)
	}
	opts.Progress = c.progress()
	report, err := c.api.cfg.Skills.Import(c.ctx(), p, tree, opts)
	if err = errors.Join(err, tree.Close()); err != nil {
		return answer{}, err
	}
	return ok(shownReport(report)), nil
}

// upload reads the body to a bounded temporary file. Closing the tree releases it.
func (c *call) upload() (registry.Tree, error) {
	if err := c.checkEncoding(); err != nil {
		return nil, err
	}
	limit := c.api.cfg.MaxImportBytes
	if c.r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	body := http.MaxBytesReader(c.w, c.r.Body, limit)
	limits := registry.TreeLimits{TotalBytes: limit}
	switch media := c.mediaType(); media {
	case "application/x-tar", "application/gzip":
		return registry.OpenTar(body, limits, c.api.cfg.SpoolDir)
	case "application/zip":
		return c.openZip(body, limits)
	case "multipart/form-data":
		return c.openForm(body, limits)
	default:
		return nil, invalid("the Content-Type is %q; send an archive as application/x-tar, application/gzip or application/zip, or files as multipart/form-data",
			bound(c.r.Header.Get("Content-Type")))
	}
}

// openZip spools a zip first, because its directory stands at its end.
func (c *call) openZip(body io.Reader, limits registry.TreeLimits) (registry.Tree, error) {
	file, err := spool(c.api.cfg.SpoolDir)
	if err != nil {
		return nil, err
	}
	size, err := io.Copy(file, body)
	if err != nil {
		if _, full := errors.AsType[*fs.PathError](err); full {
			err = spoolFault(err)
		}
		return nil, errors.Join(err, file.Close())
	}
	tree, err := registry.OpenZip(file, size, limits)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return spooledZip{tree, file}, nil
}

// spooledZip closes the file under a zip, too.
type spooledZip struct {
	*registry.ZipTree

	file io.Closer
}

func (z spooledZip) Close() error { return errors.Join(z.ZipTree.Close(), z.file.Close()) }

// uploadFault finds the reason in what the archive reader made of it.
func (c *call) uploadFault(err error) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large || c.ctx().Err() != nil {
		return c.readFault(err)
	}
	if _, own := errors.AsType[*sallyport.Error](err); own {
		return err
	}
	return c.readFault(err)
}

func shownReport(r registry.ImportReport) registry.ImportReport {
	r.Skills, r.Ignored = list(r.Skills), list(r.Ignored)
	for i, skill := range r.Skills {
		r.Skills[i].Files, r.Skills[i].Problems = list(skill.Files), list(skill.Problems)
	}
	return r
}
