package httpapi

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/sallyport-dev/sallyport/registry"
)

// openForm reads a form part by part into a file without a name: one archive, or files whose names are paths, as browsers send a folder.
func (c *call) openForm(body io.Reader, limits registry.TreeLimits) (registry.Tree, error) {
	_, params, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return nil, invalid("the form has no boundary; let the HTTP client write the Content-Type")
	}
	upload, err := registry.NewUpload(limits, c.api.cfg.SpoolDir)
	if err != nil {
		return nil, err
	}
	tree, err := c.readForm(upload, multipart.NewReader(body, params["boundary"]))
	if err != nil {
		return nil, errors.Join(err, upload.Close())
	}
	return tree, nil
}

func (c *call) readForm(upload *registry.UploadTree, form *multipart.Reader) (registry.Tree, error) {
	parts := 0
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := c.formPart(upload, part); err != nil {
			return nil, err
		}
		parts++
	}
	if parts == 0 {
		return nil, invalid("the form has no file; send an archive, or files whose names are their paths")
	}
	archive, found, err := upload.Archive(c.api.cfg.SpoolDir)
	switch {
	case err != nil:
		return nil, err
	case found:
		return closingBoth{archive, upload}, nil
	}
	return upload, upload.CheckFolders()
}

// formPart takes one part. Its name is read as it was sent: the package of forms would cut its folders off.
func (*call) formPart(upload *registry.UploadTree, part *multipart.Part) error {
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	name, isFile := params["filename"]
	switch {
	case err != nil:
		return invalid("a part of the form has no Content-Disposition that can be read")
	case !isFile:
		return invalid("the form has the field %q, which is no file; options such as publish go into the query", bound(params["name"]))
	case name == "":
		return invalid("a file of the form has no name; was one chosen?")
	}
	switch encoding := strings.ToLower(part.Header.Get("Content-Transfer-Encoding")); encoding {
	case "", "7bit", "8bit", "binary":
	default:
		return invalid("a part of the form has the Content-Transfer-Encoding %q; send it as it is", bound(encoding))
	}
	return upload.Add(name, part)
}

// closingBoth closes the upload under its archive, too.
type closingBoth struct {
	registry.Tree

	upload io.Closer
}

func (t closingBoth) Close() error { return errors.Join(t.Tree.Close(), t.upload.Close()) }

// Commit passes on what the archive knows.
func (t closingBoth) Commit() string { return registry.CommitOf(t.Tree) }
