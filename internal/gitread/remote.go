package gitread

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/sallyport-dev/sallyport"
)

// The parts of a repository's URL and the media types of smart HTTP.
const (
	RefsPath         = "/info/refs"
	RefsQuery        = "service=git-upload-pack"
	RefsMedia        = "application/x-git-upload-pack-advertisement"
	PackPath         = "/git-upload-pack"
	PackRequestMedia = "application/x-git-upload-pack-request"
	PackMedia        = "application/x-git-upload-pack-result"
)

// Remote is what a server said of its repository.
type Remote struct{ refs *packp.AdvRefs }

// ReadRefs reads the answer to RefsPath; the caller bounds r.
func ReadRefs(r io.Reader) (Remote, error) {
	refs := packp.NewAdvRefs()
	if err := refs.Decode(r); err != nil {
		if errors.Is(err, packp.ErrEmptyAdvRefs) || errors.Is(err, packp.ErrEmptyInput) {
			return Remote{}, invalid("the git repository is empty")
		}
		return Remote{}, readFault(err)
	}
	if format := refs.Capabilities.Get("object-format"); len(format) > 0 && format[0] != "sha1" {
		return Remote{}, invalid("the git repository names its objects by %s, which is not supported; import a clone from its folder", shorten(format[0]))
	}
	return Remote{refs}, nil
}

func (r Remote) look(name string) (Hash, bool) {
	if name == "HEAD" {
		if r.refs.Head == nil {
			return Hash{}, false
		}
		return *r.refs.Head, true
	}
	hash, found := r.refs.References[name]
	return hash, found
}

// Want is one request for a pack.
type Want struct {
	// Hash is the object wanted: a commit or a tag.
	Hash Hash
	// Body of the request.
	Body []byte

	request *packp.UploadPackRequest
}

// Choose resolves a ref and makes the request for it: shallow where the server can. A commit that is no tip is asked for by itself where the
// server allows that, else with the history of every branch and tag, within the same bounds.
func (r Remote) Choose(ref string) (Want, error) {
	request := packp.NewUploadPackRequest()
	for _, c := range []capability.Capability{capability.OFSDelta, capability.Sideband64k, capability.NoProgress} {
		if r.refs.Capabilities.Supports(c) {
			if err := request.Capabilities.Set(c); err != nil {
				return Want{}, broken(err)
			}
		}
	}
	want, shallow := Want{request: request}, true
	if commit, ok := asCommit(ref); ok {
		want.Hash = commit
		tips := r.tips()
		if _, tip := tips[commit]; !tip && !r.handsOutCommits() {
			shallow = false
			for hash := range tips {
				request.Wants = append(request.Wants, hash)
			}
		}
	} else {
		hash, err := choose(ref, r.look)
		if err != nil {
			return Want{}, err
		}
		want.Hash = hash
	}
	if len(request.Wants) == 0 {
		request.Wants = append(request.Wants, want.Hash)
	}
	if shallow && r.refs.Capabilities.Supports(capability.Shallow) {
		if err := request.Capabilities.Set(capability.Shallow); err != nil {
			return Want{}, broken(err)
		}
		request.Depth = packp.DepthCommits(1)
	}
	var body bytes.Buffer
	if err := request.UploadRequest.Encode(&body); err != nil {
		return Want{}, broken(err)
	}
	if err := pktline.NewEncoder(&body).EncodeString("done\n"); err != nil {
		return Want{}, broken(err)
	}
	want.Body = body.Bytes()
	return want, nil
}

func (r Remote) handsOutCommits() bool {
	return r.refs.Capabilities.Supports("allow-reachable-sha1-in-want") || r.refs.Capabilities.Supports("allow-any-sha1-in-want")
}

// tips are the branches and tags, and nothing that a host keeps beside them, such as the refs of requests to merge.
func (r Remote) tips() map[Hash]bool {
	tips := map[Hash]bool{}
	for name, hash := range r.refs.References {
		if strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") {
			tips[hash] = true
		}
	}
	return tips
}

// PackOf strips an answer to its pack. Reading it fails with what the server says.
func (w Want) PackOf(body io.ReadCloser) (io.Reader, error) {
	response := packp.NewUploadPackResponse(w.request)
	if err := response.Decode(body); err != nil {
		if said, refused := errors.AsType[*pktline.ErrorLine](err); refused {
			return nil, &sallyport.Error{
				Op: op, Code: sallyport.CodeInvalidArgument,
				Message: "the git server does not hand that out; name a branch or a tag that it has", Err: said,
			}
		}
		return nil, readFault(err)
	}
	if w.request.Capabilities.Supports(capability.Sideband64k) {
		return sideband.NewDemuxer(sideband.Sideband64k, response), nil
	}
	return response, nil
}
