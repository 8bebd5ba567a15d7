package mcpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// The media types that hosts look for.
const (
	mediaMarkdown  = "text/markdown"
	mediaDirectory = "inode/directory"
)

// readResource is resources/read of a skill URI: the very bytes that are stored, text as text and everything else as base64. The
// store holds them against their sha256, and so does this.
func (a *API) readResource(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	p, found, err := a.locate(ctx, uri)
	if err != nil {
		return nil, err
	}
	listed, exists := found.Revision.Component(found.path)
	if !exists {
		return nil, unknownURI(uri)
	}
	file, err := a.cfg.Catalogue.Component(ctx, p, sallyport.SkillRef{SkillID: found.Skill.ID}, found.Revision.ID, listed.Path)
	if err == nil && sallyport.DigestOf(file.Content).Hex() != listed.SHA256 {
		err = &sallyport.Error{Op: "mcp.read_resource", Code: sallyport.CodeInternal, Err: errors.New("stored content differs from its sha256")}
	}
	if err != nil {
		return nil, protocolError(err, uri)
	}
	contents := &mcp.ResourceContents{URI: uri, MIMEType: mediaTypeOf(listed)}
	if len(file.Content) > 0 && utf8.Valid(file.Content) {
		contents.Text = string(file.Content)
	} else {
		contents.Blob = file.Content
		if contents.Blob == nil {
			contents.Blob = []byte{} // nil would be left out, and an empty file is a file
		}
	}
	return &mcp.ReadResourceResult{
		Cacheable: mcp.Cacheable{TTLMs: found.ttl(), CacheScope: "private"}, Contents: []*mcp.ResourceContents{contents},
	}, nil
}

func mediaTypeOf(c sallyport.Component) string {
	if c.Path == registry.SkillFile {
		return mediaMarkdown
	}
	return c.MediaType
}

// listResources answers resources/list from the database: the SKILL.md of every skill in the catalogue. What is registered with the
// SDK besides comes first.
func (a *API) listResources(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method != methodListResources {
			return next(ctx, method, req)
		}
		cursor := ""
		params, ok := req.GetParams().(*mcp.ListResourcesParams)
		if ok && params != nil {
			// The cursor is ours: the SDK's own list is on the first page whole.
			cursor, params.Cursor = params.Cursor, ""
		}
		result, err := next(ctx, method, req)
		if err != nil {
			return nil, err
		}
		list, ok := result.(*mcp.ListResourcesResult)
		if !ok {
			return result, nil
		}
		page, err := a.cataloguePage(ctx, cursor)
		if err != nil {
			return nil, err
		}
		if cursor != "" || list.Resources == nil {
			list.Resources = []*mcp.Resource{}
		}
		for _, entry := range page.Entries {
			list.Resources = append(list.Resources, describeManifest(entry))
		}
		list.NextCursor = page.NextCursor
		return list, nil
	}
}

// describeManifest is the SKILL.md of a skill in a list of resources, under the name and with the words of its frontmatter.
func describeManifest(entry registry.CatalogueEntry) *mcp.Resource {
	var fields struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	if err := json.Unmarshal(entry.Revision.Frontmatter, &fields); err != nil {
		fields.Name, fields.Description = entry.Skill.Name, entry.Skill.Description
	}
	file, _ := entry.Revision.Component(registry.SkillFile)
	return &mcp.Resource{
		URI: fileURI(skillRoot(entry, false), registry.SkillFile), Name: fields.Name, Description: fields.Description,
		MIMEType: mediaMarkdown, Size: file.Size,
	}
}

type readDirectoryParams struct {
	mcp.ParamsBase

	URI    string `json:"uri"`
	Cursor string `json:"cursor,omitempty"`
}

type readDirectoryResult struct {
	mcp.ResultBase
	cached

	Resources []directoryElement `json:"resources"`
}

// directoryElement is a resource whose size is there when it is zero too.
type directoryElement struct {
	URI      string `json:"uri"`
	Name     string `json:"name"`
	MIMEType string `json:"mimeType"`
	Size     *int64 `json:"size,omitempty"`
}

// readDirectory is resources/directory/read: the direct children of a skill's root or of a directory in it, on one page.
func (a *API) readDirectory(ctx context.Context, _ *mcp.ServerSession, params *readDirectoryParams) (*readDirectoryResult, error) {
	if params == nil || params.URI == "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "uri is missing; send the URI of a directory"}
	}
	if params.Cursor != "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is not one of ours: a directory is one page; start without one"}
	}
	_, found, err := a.locate(ctx, params.URI)
	if err != nil {
		return nil, err
	}
	children := childrenOf(found)
	if len(children) == 0 {
		return nil, unknownURI(params.URI) // a file, or nothing: there are no empty directories
	}
	return &readDirectoryResult{cached: complete(found.ttl()), Resources: children}, nil
}

func childrenOf(found served) []directoryElement {
	prefix := ""
	if found.path != "" {
		prefix = found.path + "/"
	}
	var children []directoryElement
	seen := map[string]bool{}
	for _, c := range found.Revision.Components {
		below, inside := strings.CutPrefix(c.Path, prefix)
		if !inside {
			continue
		}
		name, _, isDirectory := strings.Cut(below, "/")
		child := directoryElement{URI: fileURI(found.root, prefix+name), Name: name, MIMEType: mediaTypeOf(c), Size: &c.Size}
		if isDirectory {
			child.MIMEType, child.Size = mediaDirectory, nil
		}
		if !seen[name] {
			seen[name] = true
			children = append(children, child)
		}
	}
	slices.SortFunc(children, func(a, b directoryElement) int { return cmp.Compare(a.Name, b.Name) })
	return children
}
