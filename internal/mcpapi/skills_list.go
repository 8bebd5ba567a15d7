package mcpapi

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// The bounds of one page of the catalogue.
const (
	cataloguePage  = 50
	catalogueBytes = 1 << 20 // of its entries, as JSON; the first is always there
	// catalogueScan bounds the pages of the registry that one page is made of: most skills may be drafts.
	catalogueScan = 10
)

type listSkillsParams struct {
	mcp.ParamsBase

	Cursor string `json:"cursor,omitempty"`
}

type listSkillsResult struct {
	mcp.ResultBase
	cached

	Skills     []skillEntry `json:"skills"`
	NextCursor string       `json:"nextCursor,omitempty"`
}

type getSkillParams struct {
	mcp.ParamsBase

	URI string `json:"uri"`
}

type getSkillResult struct {
	mcp.ResultBase
	cached

	Skill skillEntry `json:"skill"`
}

// skillEntry is one skill of the extension: every file of it, each once, with the digest of its bytes.
type skillEntry struct {
	Meta        skillMeta           `json:"_meta,omitzero"`
	URI         string              `json:"uri"`
	Frontmatter json.RawMessage     `json:"frontmatter"`
	Resources   []skillEntryElement `json:"resources"`
}

type skillEntryElement struct {
	URI    string           `json:"uri"`
	Digest sallyport.Digest `json:"digest"`
	Size   int64            `json:"size"`
}

// skillMeta is what execute_cloud_skill and a reviewer need beside the entry. RevisionURI stays the same content for ever.
type skillMeta struct {
	SkillID     sallyport.SkillID    `json:"dev.sallyport/skill_id"`
	RevisionID  sallyport.RevisionID `json:"dev.sallyport/revision_id"`
	Digest      sallyport.Digest     `json:"dev.sallyport/revision_digest"`
	RevisionURI string               `json:"dev.sallyport/revision_uri"`
}

// listSkills is skills/list. What strict hosts would refuse is left out and counted in _meta.
func (a *API) listSkills(ctx context.Context, _ *mcp.ServerSession, params *listSkillsParams) (*listSkillsResult, error) {
	cursor := ""
	if params != nil {
		cursor = params.Cursor
	}
	page, err := a.cataloguePage(ctx, cursor)
	if err != nil {
		return nil, err
	}
	result := &listSkillsResult{cached: complete(ttlPublished), Skills: []skillEntry{}, NextCursor: page.NextCursor}
	for _, entry := range page.Entries {
		result.Skills = append(result.Skills, describeEntry(entry, skillRoot(entry, false)))
	}
	if page.Unlisted > 0 {
		result.SetMeta(map[string]any{metaKey + "unlisted": page.Unlisted})
	}
	return result, nil
}

// cataloguePage returns one page that keeps to the bounds and never splits an entry.
func (a *API) cataloguePage(ctx context.Context, cursor string) (registry.CataloguePage, error) {
	who, ok := callerFrom(ctx)
	if !ok {
		return registry.CataloguePage{}, protocolError(&sallyport.Error{Op: "mcp.skills", Code: sallyport.CodeUnauthenticated}, "")
	}
	out := registry.CataloguePage{Entries: []registry.CatalogueEntry{}, NextCursor: cursor}
	for range catalogueScan {
		page, err := a.fittingPage(ctx, who.principal, out.NextCursor)
		if err != nil {
			return registry.CataloguePage{}, protocolError(err, "")
		}
		out.Entries, out.NextCursor = page.Entries, page.NextCursor
		out.Unlisted += page.Unlisted
		if len(out.Entries) > 0 || out.NextCursor == "" {
			break
		}
	}
	return out, nil
}

// fittingPage reads a page, and a shorter one when its entries are too large together.
func (a *API) fittingPage(ctx context.Context, p sallyport.Principal, cursor string) (registry.CataloguePage, error) {
	for limit := cataloguePage; ; limit /= 2 {
		page, err := a.cfg.Catalogue.Catalogue(ctx, p, registry.CatalogueRequest{Limit: limit, Cursor: cursor})
		if err != nil || limit == 1 || entryBytes(page.Entries) <= catalogueBytes {
			return page, err
		}
	}
}

// entryBytes is about the size of the entries as JSON, and never less.
func entryBytes(entries []registry.CatalogueEntry) int {
	total := 0
	for _, entry := range entries {
		root := len(skillRoot(entry, true))
		total += len(entry.Revision.Frontmatter) + 4*root + 512
		for _, c := range entry.Revision.Components {
			total += root + 3*len(c.Path) + 160
		}
	}
	return total
}

// getSkill is skills/get: any skill that the caller can see and whose name hosts accept, listed or not, at what is published or at one
// revision.
func (a *API) getSkill(ctx context.Context, _ *mcp.ServerSession, params *getSkillParams) (*getSkillResult, error) {
	if params == nil || params.URI == "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "uri is missing; send the URI of a SKILL.md"}
	}
	_, found, err := a.locate(ctx, params.URI)
	if err != nil {
		return nil, err
	}
	_, exists := found.Revision.Component(registry.SkillFile)
	if found.path != registry.SkillFile || !exists || registry.ListedName(found.Revision.Frontmatter) == "" {
		return nil, unknownURI(params.URI)
	}
	return &getSkillResult{cached: complete(found.ttl()), Skill: describeEntry(found.CatalogueEntry, found.root)}, nil
}

// describeEntry makes the entry from the manifest that a run checks its grant against.
func describeEntry(entry registry.CatalogueEntry, root string) skillEntry {
	e := skillEntry{
		URI: fileURI(root, registry.SkillFile), Frontmatter: entry.Revision.Frontmatter, Resources: []skillEntryElement{},
		Meta: skillMeta{
			SkillID: entry.Skill.ID, RevisionID: entry.Revision.ID, Digest: entry.Revision.Digest,
			RevisionURI: fileURI(skillRoot(entry, true), registry.SkillFile),
		},
	}
	for _, c := range entry.Revision.Components {
		e.Resources = append(e.Resources, skillEntryElement{fileURI(root, c.Path), sallyport.Digest("sha256:" + c.SHA256), c.Size})
	}
	return e
}
