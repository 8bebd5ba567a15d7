package registry

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/gitread"
)

// maxRefsBytes bounds what a git server says of its branches and tags.
const maxRefsBytes = 16 << 20

// fetchGit reads one commit of a repository over smart HTTP: two requests, each through the same guard as any download. The slot, the
// deadline and the check of base are the caller's.
func (f *Fetcher) fetchGit(ctx context.Context, base *url.URL, at gitread.Location) (Tree, Source, error) {
	base.Path, base.RawPath = strings.TrimRight(base.Path, "/"), strings.TrimRight(base.RawPath, "/")
	remote, base, err := f.gitRefs(ctx, base)
	if err != nil {
		return nil, Source{}, err
	}
	want, err := remote.Choose(at.Ref)
	if err != nil {
		return nil, Source{}, err
	}
	pack, digest, size, err := f.gitPack(ctx, base, want)
	if err != nil {
		return nil, Source{}, err
	}
	tree, err := openGit(ctx, pack, want.Hash, at.Subdir)
	if err != nil {
		return nil, Source{}, err
	}
	return tree, Source{
		URL: plainSource(base), SizeBytes: size, Digest: digest, Commit: tree.Commit(), Ref: at.Ref, Subdir: at.Subdir,
	}, nil
}

// gitRefs asks for the branches and tags, and returns where the repository finally is.
func (f *Fetcher) gitRefs(ctx context.Context, base *url.URL) (gitread.Remote, *url.URL, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, gitURL(base, gitread.RefsPath, gitread.RefsQuery), nil)
	if err != nil {
		return gitread.Remote{}, nil, err
	}
	response, err := f.gitDo(request, gitread.RefsMedia)
	if err != nil {
		return gitread.Remote{}, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	final := *response.Request.URL
	moved, found := strings.CutSuffix(final.EscapedPath(), gitread.RefsPath)
	if !found {
		return gitread.Remote{}, nil, refuseURL("its git server redirects to something else")
	}
	if final.Path, err = url.PathUnescape(moved); err != nil {
		return gitread.Remote{}, nil, refuseURL("it is malformed")
	}
	final.RawPath, final.RawQuery, final.Fragment = moved, "", ""
	remote, err := gitread.ReadRefs(&cappedReader{r: response.Body, left: maxRefsBytes, over: sallyport.Errorf(opFetch, sallyport.CodeRequestTooLarge,
		"the git server lists more than %d bytes of branches and tags", maxRefsBytes)})
	return remote, &final, err
}

// gitPack asks for a pack and unpacks it into a file without a name.
func (f *Fetcher) gitPack(ctx context.Context, base *url.URL, want gitread.Want) (*gitread.Pack, sallyport.Digest, int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, gitURL(base, gitread.PackPath, ""), bytes.NewReader(want.Body))
	if err != nil {
		return nil, "", 0, err
	}
	request.Header.Set("Content-Type", gitread.PackRequestMedia)
	response, err := f.gitDo(request, gitread.PackMedia)
	if err != nil {
		return nil, "", 0, err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	sum := sha256.New()
	capped := &cappedReader{r: response.Body, left: f.cfg.MaxBytes, over: f.tooLarge()}
	content, err := want.PackOf(io.NopCloser(io.TeeReader(capped, sum)))
	if err != nil {
		return nil, "", 0, err
	}
	spool, err := openSpool(f.cfg.SpoolDir)
	if err != nil {
		return nil, "", 0, &sallyport.Error{Op: opFetch, Code: sallyport.CodeInternal, Err: err}
	}
	pack, err := gitread.ReadPack(ctx, content, spool, gitread.Limits{})
	if err != nil {
		return nil, "", 0, err
	}
	return pack, sallyport.Digest("sha256:" + hex.EncodeToString(sum.Sum(nil))), capped.read, nil
}

func gitURL(base *url.URL, path, query string) string {
	u := *base
	if u.RawPath != "" {
		u.RawPath += path
	}
	u.Path += path
	u.RawQuery = query
	return u.String()
}

// gitDo sends one request and refuses an answer that no git server gives.
func (f *Fetcher) gitDo(request *http.Request, media string) (*http.Response, error) {
	request.Header.Set("User-Agent", "git/sallyport-"+f.cfg.Version)
	request.Header.Set("Accept", media)
	response, err := f.client.Do(request)
	if err != nil {
		return nil, err
	}
	said, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		err = refuseURL("its git server wants a login, and none is sent; import a clone from its folder: sallyport import FOLDER")
	case response.StatusCode != http.StatusOK:
		err = refuseURL("its git server answers %d where 200 is wanted", response.StatusCode)
	case said != media:
		err = refuseURL("no git server of today answers there (smart HTTP); name the repository itself, or a zip, a tar or a tar.gz")
	}
	if err != nil {
		return nil, errors.Join(err, response.Body.Close())
	}
	return response, nil
}

// cappedReader fails with over when more than left bytes come.
type cappedReader struct {
	r          io.Reader
	left, read int64
	over       error
}

func (c *cappedReader) Read(p []byte) (int, error) {
	if c.left <= 0 {
		var one [1]byte
		if n, err := c.r.Read(one[:]); n == 0 {
			return 0, err
		}
		return 0, c.over
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.r.Read(p)
	c.left -= int64(n)
	c.read += int64(n)
	return n, err
}
