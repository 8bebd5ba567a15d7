package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// RevisionList holds the revisions of a skill, newest first, without manifests.
type RevisionList struct {
	Revisions []sallyport.Revision `json:"revisions"`
}

// Manifest lists the components of a revision.
type Manifest struct {
	RevisionID     sallyport.RevisionID  `json:"revision_id"`
	RevisionDigest sallyport.Digest      `json:"revision_digest"`
	Components     []sallyport.Component `json:"components"`
}

// ComponentContent is a component with its bytes: Content when they are UTF-8, else ContentBase64.
type ComponentContent struct {
	sallyport.Component

	Content       *string `json:"content,omitempty"`
	ContentBase64 *string `json:"content_base64,omitempty"`
}

// Bytes returns the content, checked against the SHA-256 that came with it.
func (c ComponentContent) Bytes() ([]byte, error) {
	var data []byte
	switch {
	case c.Content != nil:
		data = []byte(*c.Content)
	case c.ContentBase64 != nil:
		decoded, err := base64.StdEncoding.DecodeString(*c.ContentBase64)
		if err != nil {
			return nil, &sallyport.Error{Op: "client.component", Code: sallyport.CodeInternal, Err: err}
		}
		data = decoded
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != c.SHA256 {
		return nil, errDigest()
	}
	return data, nil
}

func errDigest() error {
	return &sallyport.Error{
		Op: "client", Code: sallyport.CodeInternal, Err: errors.New("the content that arrived differs from its digest"),
	}
}

// Skills lists or searches skills.
func (c *Client) Skills(ctx context.Context, req registry.ListRequest) (sallyport.Envelope[registry.ListResult], error) {
	query := url.Values{}
	set(query, "team_id", req.TeamID)
	set(query, "query", req.Query)
	setTrue(query, "archived", req.IncludeArchived)
	set(query, "cursor", req.Cursor)
	setLimit(query, req.Limit)
	return call[registry.ListResult](ctx, c, get("/v1/skills", query))
}

// setLimit sends a limit unless it is zero, which means the default.
func setLimit(query url.Values, limit int) {
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
}

// Skill returns one skill with its published and its latest revision.
func (c *Client) Skill(ctx context.Context, ref sallyport.SkillRef) (sallyport.Envelope[registry.SkillView], error) {
	path, query, err := skillPath(ref)
	if err != nil {
		return sallyport.Envelope[registry.SkillView]{}, err
	}
	return call[registry.SkillView](ctx, c, get(path, query))
}

// Revisions lists a skill's revisions.
func (c *Client) Revisions(ctx context.Context, ref sallyport.SkillRef) (sallyport.Envelope[RevisionList], error) {
	path, query, err := skillPath(ref)
	if err != nil {
		return sallyport.Envelope[RevisionList]{}, err
	}
	return call[RevisionList](ctx, c, get(path+"/revisions", query))
}

// Revision returns one revision with its manifest.
func (c *Client) Revision(ctx context.Context, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Envelope[sallyport.Revision], error) {
	path, query, err := skillPath(ref)
	if err == nil && id == "" {
		err = invalid("name a revision by its id")
	}
	if err != nil {
		return sallyport.Envelope[sallyport.Revision]{}, err
	}
	return call[sallyport.Revision](ctx, c, get(path+"/revisions"+segment(id), query))
}

// Components returns the manifest of a revision; an empty id means the published one, else the latest.
func (c *Client) Components(ctx context.Context, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Envelope[Manifest], error) {
	path, query, err := skillPath(ref)
	if err != nil {
		return sallyport.Envelope[Manifest]{}, err
	}
	set(query, "revision_id", id)
	return call[Manifest](ctx, c, get(path+"/components", query))
}

// Component returns one component with its bytes, by its path or its id; an empty revision means the published one, else the
// latest.
func (c *Client) Component(ctx context.Context, ref sallyport.SkillRef, id sallyport.RevisionID, pathOrID string) (sallyport.Envelope[ComponentContent], error) {
	path, query, err := skillPath(ref)
	if err != nil {
		return sallyport.Envelope[ComponentContent]{}, err
	}
	inside, err := plainPath(pathOrID)
	if err != nil {
		return sallyport.Envelope[ComponentContent]{}, err
	}
	set(query, "revision_id", id)
	return call[ComponentContent](ctx, c, get(path+"/components"+inside, query))
}

type saveBody struct {
	Slug               string               `json:"slug,omitempty"`
	SkillID            sallyport.SkillID    `json:"skill_id,omitempty"`
	TeamID             sallyport.TeamID     `json:"team_id,omitempty"`
	Personal           bool                 `json:"personal,omitempty"`
	Files              []fileBody           `json:"files,omitempty"`
	Remove             []string             `json:"remove,omitempty"`
	ReplaceAll         bool                 `json:"replace_all,omitempty"`
	ExpectedRevisionID sallyport.RevisionID `json:"expected_revision_id,omitempty"`
	CreateOnly         bool                 `json:"create_only,omitempty"`
	Publish            bool                 `json:"publish,omitempty"`
	Message            string               `json:"message,omitempty"`
}

type fileBody struct {
	Path          string                    `json:"path"`
	ContentBase64 string                    `json:"content_base64"`
	Mode          uint32                    `json:"mode,omitempty"`
	Kind          sallyport.Kind            `json:"kind,omitempty"`
	MediaType     string                    `json:"media_type,omitempty"`
	Script        *sallyport.ScriptSettings `json:"script,omitempty"`
}

// Save creates a skill or adds a revision to one.
func (c *Client) Save(ctx context.Context, req registry.SaveRequest) (sallyport.Envelope[registry.SaveResult], error) {
	body := saveBody{
		Slug: req.Ref.Slug, SkillID: req.Ref.SkillID, TeamID: req.Ref.TeamID, Personal: req.Personal, Remove: req.Remove,
		ReplaceAll: req.ReplaceAll, ExpectedRevisionID: req.ExpectedRevisionID, CreateOnly: req.CreateOnly,
		Publish: req.Publish, Message: req.Message,
	}
	for _, f := range req.Files {
		body.Files = append(body.Files, fileBody{
			f.Path, base64.StdEncoding.EncodeToString(f.Content), f.Mode, f.Kind, f.MediaType, f.Script,
		})
	}
	r, err := post("/v1/skills", nil, body)
	if err != nil {
		return sallyport.Envelope[registry.SaveResult]{}, err
	}
	r.idempotent(req.IdempotencyKey)
	return call[registry.SaveResult](ctx, c, r)
}

// Publish moves the skill's published pointer; an empty id means the latest revision.
func (c *Client) Publish(ctx context.Context, ref sallyport.SkillRef, id sallyport.RevisionID) (sallyport.Envelope[Publication], error) {
	body := map[string]string{}
	if id != "" {
		body["revision_id"] = string(id)
	}
	return change[Publication](ctx, c, ref, "/publish", body)
}

// Archive takes a skill out of lists and runs. The view holds the skill alone.
func (c *Client) Archive(ctx context.Context, ref sallyport.SkillRef) (sallyport.Envelope[registry.SkillView], error) {
	return c.change(ctx, ref, "/archive", nil)
}

// Restore undoes Archive. The view holds the skill alone.
func (c *Client) Restore(ctx context.Context, ref sallyport.SkillRef) (sallyport.Envelope[registry.SkillView], error) {
	return c.change(ctx, ref, "/restore", nil)
}

func (c *Client) change(ctx context.Context, ref sallyport.SkillRef, verb string, body map[string]string) (sallyport.Envelope[registry.SkillView], error) {
	return change[registry.SkillView](ctx, c, ref, verb, body)
}

func change[T any](ctx context.Context, c *Client, ref sallyport.SkillRef, verb string, body map[string]string) (sallyport.Envelope[T], error) {
	path, query, err := skillPath(ref)
	if err != nil {
		return sallyport.Envelope[T]{}, err
	}
	var sent any
	if body != nil {
		sent = body
	}
	r, err := post(path+verb, query, sent)
	if err != nil {
		return sallyport.Envelope[T]{}, err
	}
	return call[T](ctx, c, r)
}

// Import sends an archive - a tar, a tar.gz or a zip, told apart by its first bytes - while it is read, and returns what became
// of every skill and file in it. An error of the archive's reader is returned as it is.
func (c *Client) Import(ctx context.Context, archive io.Reader, opts registry.ImportOptions) (sallyport.Envelope[registry.ImportReport], error) {
	query := url.Values{}
	set(query, "team_id", opts.TeamID)
	setTrue(query, "personal", opts.Personal)
	setTrue(query, "publish", opts.Publish)
	setTrue(query, "dry_run", opts.DryRun)
	set(query, "message", opts.Message)
	source := &watched{r: archive}
	buffered := bufio.NewReader(source)
	magic, _ := buffered.Peek(4) // a fault shows again when the body is read
	req := request{
		method: http.MethodPost, path: "/v1/import", query: query, body: buffered, media: archiveType(magic),
		// A refusal comes before the archive was sent in vain.
		header: http.Header{"Expect": {"100-continue"}},
	}
	var envelope sallyport.Envelope[registry.ImportReport]
	var err error
	if opts.Progress != nil {
		envelope, err = callLines[registry.ImportReport](ctx, c, req, "import_progress", opts.Progress)
	} else {
		envelope, err = call[registry.ImportReport](ctx, c, req)
	}
	if fault := source.fault(); err != nil && fault != nil && ctx.Err() == nil {
		return envelope, fault
	}
	return envelope, err
}

func archiveType(magic []byte) string {
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		return "application/gzip"
	case bytes.HasPrefix(magic, []byte("PK\x03\x04")), bytes.HasPrefix(magic, []byte("PK\x05\x06")):
		return "application/zip"
	}
	return "application/x-tar"
}
