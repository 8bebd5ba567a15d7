package mcpapi

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpwire"
	"github.com/sallyport-dev/sallyport/registry"
)

// The Skills extension of the protocol and its methods.
const (
	skillsExtension     = "io.modelcontextprotocol/skills"
	methodSkillsList    = "skills/list"
	methodSkillsGet     = "skills/get"
	methodDirectoryRead = "resources/directory/read"
	methodListResources = "resources/list"
	methodReadResource  = "resources/read"
)

// Catalogue is what the Skills extension needs of package registry.
type Catalogue interface {
	Catalogue(ctx context.Context, p sallyport.Principal, req registry.CatalogueRequest) (registry.CataloguePage, error)
	Served(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (registry.CatalogueEntry, error)
	Component(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, revision sallyport.RevisionID, pathOrID string) (sallyport.Component, error)
}

// How long a client may keep an answer, in milliseconds. What is published may change at any time; a revision never does, and only
// the right to see it may end.
const (
	ttlPublished = 0
	ttlRevision  = 60 * 60 * 1000
)

// metaKey is the prefix of our members of _meta.
const metaKey = "dev.sallyport/"

// declareSkills adds the extension to the capabilities of a server.
func declareSkills(options *mcp.ServerOptions) {
	if options.Capabilities == nil {
		options.Capabilities = &mcp.ServerCapabilities{}
	}
	options.Capabilities.AddExtension(skillsExtension, map[string]any{"directoryRead": true})
}

// addSkills registers the methods of the extension, the template of its resources and the list of them.
func (a *API) addSkills() error {
	a.server.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "skill_file", Title: "Files of skills", URITemplate: skillScheme + "{+path}",
		Description: "A file of a skill: skill://<team>/<slug>/<path> of what is published, skill://<team>/<slug>@<revision_id>/<name>/<path> " +
			"of one immutable revision. skills/list and resources/directory/read give the URIs.",
	}, a.readResource)
	a.server.AddReceivingMiddleware(a.listResources)
	if err := mcp.AddReceivingCustomMethod(a.server, methodSkillsList, a.listSkills); err != nil {
		return err
	}
	if err := mcp.AddReceivingCustomMethod(a.server, methodSkillsGet, a.getSkill); err != nil {
		return err
	}
	return mcp.AddReceivingCustomMethod(a.server, methodDirectoryRead, a.readDirectory)
}

// cached is what every result of the extension carries.
type cached struct {
	ResultType string `json:"resultType"`
	TTLMs      int    `json:"ttlMs"`
	CacheScope string `json:"cacheScope"`
}

func complete(ttl int) cached { return cached{"complete", ttl, "private"} }

// served is a file or a directory that a URI names.
type served struct {
	registry.CatalogueEntry

	address address
	root    string // the URI of the skill's directory
	path    string // within the skill, empty for its root
}

func (s served) ttl() int {
	if s.address.revision != "" {
		return ttlRevision
	}
	return ttlPublished
}

// locate finds the skill and the path that uri names, for the caller of the message. Whatever the caller cannot see is unknown.
func (a *API) locate(ctx context.Context, uri string) (sallyport.Principal, served, error) {
	who, ok := callerFrom(ctx)
	if !ok {
		return sallyport.Principal{}, served{}, protocolError(&sallyport.Error{Op: "mcp.skills", Code: sallyport.CodeUnauthenticated}, uri)
	}
	p := who.principal
	if err := p.Require("mcp.skills", sallyport.ScopeMemoryRead); err != nil {
		return p, served{}, protocolError(err, "")
	}
	at, ok := parseSkillURI(uri)
	if !ok {
		return p, served{}, unknownURI(uri)
	}
	team, ok := teamAt(p, at.place)
	if !ok {
		return p, served{}, unknownURI(uri)
	}
	entry, err := a.cfg.Catalogue.Served(ctx, p, sallyport.SkillRef{Slug: at.slug, TeamID: team}, at.revision)
	if err != nil {
		return p, served{}, protocolError(err, uri)
	}
	// A slug without a team is looked for in the caller's teams too.
	if entry.Skill.TeamID != team {
		return p, served{}, unknownURI(uri)
	}
	found := served{CatalogueEntry: entry, address: at, root: skillRoot(entry, at.revision != "")}
	rest, below := at.rest, found.root[strings.LastIndexByte(found.root, '/')+1:]
	if at.revision != "" || below != at.slug {
		if len(rest) == 0 || rest[0] != below {
			return p, served{}, unknownURI(uri)
		}
		rest = rest[1:]
	}
	found.path = strings.Join(rest, "/")
	return p, found, nil
}

// unknownURI is the answer for whatever is not there, not the caller's or no URI of ours.
func unknownURI(uri string) error {
	data, err := json.Marshal(map[string]string{"uri": uri})
	if err != nil {
		data = nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no skill of yours has this URI; skills/list and resources/directory/read give those you can use", Data: data}
}

// protocolError turns err into an error of the protocol. Its cause never shows.
func protocolError(err error, uri string) error {
	public := sallyport.Public(err)
	switch class := sallyport.Lookup(public.Code).Class; {
	case uri != "" && (class == sallyport.ClassNotFound || class == sallyport.ClassDenied || class == sallyport.ClassConflict || class == sallyport.ClassInvalid):
		return unknownURI(uri)
	case class == sallyport.ClassInvalid:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: public.Message}
	case class == sallyport.ClassInternal:
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: public.Message}
	}
	data, broken := json.Marshal(public)
	if broken != nil {
		data = nil
	}
	return &jsonrpc.Error{Code: mcpwire.CodeTransport, Message: string(public.Code) + ": " + public.Message, Data: data}
}
