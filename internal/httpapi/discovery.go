package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// Catalogue is what the discovery of skills needs of package registry.
type Catalogue interface {
	Catalogue(ctx context.Context, p sallyport.Principal, req registry.CatalogueRequest) (registry.CataloguePage, error)
	Served(ctx context.Context, p sallyport.Principal, ref sallyport.SkillRef, id sallyport.RevisionID) (registry.CatalogueEntry, error)
	Content(ctx context.Context, p sallyport.Principal, entry registry.CatalogueEntry) (sallyport.Revision, error)
}

// The discovery draft, revision 0.2.0: an index of skills under a well-known path, and one artifact for each.
const (
	discoverySchema = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
	discoveryPath   = "/.well-known/agent-skills/"
	// discoveryPage is how many skills are read at once, and discoveryMax how many an index holds at most.
	discoveryPage = 200
	discoveryMax  = 10_000
	// maxDiscoveryDescription is in UTF-16 code units, as installers count.
	maxDiscoveryDescription = 1024
)

// discoveryIndex is the document. Installers ignore what they do not know, so what was left out can be said in it.
type discoveryIndex struct {
	Schema   string           `json:"$schema"`
	Skills   []discoveryEntry `json:"skills"`
	Unlisted int              `json:"unlisted,omitempty"`
}

type discoveryEntry struct {
	Name        string           `json:"name"`
	Type        string           `json:"type"` // skill-md or archive
	Description string           `json:"description"`
	URL         string           `json:"url"`
	Digest      sallyport.Digest `json:"digest"` // of the artifact

	personal bool
}

// discover answers with the index of the skills that the caller can see: published, and accepted by every host. Of two with one
// name the personal one is kept, else the first, because an installer writes to a folder of that name; the other is counted.
func discover(c *call, p sallyport.Principal) (answer, error) {
	index := discoveryIndex{Schema: discoverySchema, Skills: []discoveryEntry{}}
	req := registry.CatalogueRequest{Limit: discoveryPage}
	for {
		page, err := c.api.cfg.Catalogue.Catalogue(c.ctx(), p, req)
		if err != nil {
			return answer{}, err
		}
		index.Unlisted += page.Unlisted
		for _, entry := range page.Entries {
			described, err := c.api.describeArtifact(c.ctx(), p, entry)
			if err != nil {
				return answer{}, err
			}
			index.Skills = append(index.Skills, described)
		}
		if req.Cursor = page.NextCursor; req.Cursor == "" {
			break
		}
		if len(index.Skills) >= discoveryMax {
			return answer{}, sallyport.Errorf("httpapi.discover", sallyport.CodeRequestTooLarge,
				"there are more than %d skills; read them page by page from /v1/skills", discoveryMax)
		}
	}
	all := len(index.Skills)
	slices.SortStableFunc(index.Skills, func(a, b discoveryEntry) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), -cmp.Compare(boolInt(a.personal), boolInt(b.personal)))
	})
	index.Skills = slices.CompactFunc(index.Skills, func(a, b discoveryEntry) bool { return a.Name == b.Name })
	index.Unlisted += all - len(index.Skills)
	document, err := json.Marshal(index)
	return answer{document: document}, err
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// describeArtifact makes the entry of a skill. The URL names the revision, so it is the same bytes for ever.
func (a *api) describeArtifact(ctx context.Context, p sallyport.Principal, entry registry.CatalogueEntry) (discoveryEntry, error) {
	name := registry.ListedName(entry.Revision.Frontmatter)
	described := discoveryEntry{
		Name: name, Type: "archive", Description: descriptionOf(entry.Revision.Frontmatter), personal: entry.Skill.TeamID == "",
	}
	artifact := artifactName(entry.Revision)
	if artifact == registry.SkillFile {
		file, _ := entry.Revision.Component(registry.SkillFile)
		described.Type, described.Digest = "skill-md", sallyport.Digest("sha256:"+file.SHA256)
	} else {
		digest, err := a.artifacts.digest(entry.Revision.ID, func() (sallyport.Digest, error) {
			packed, err := a.pack(ctx, p, entry, artifact)
			return sallyport.DigestOf(packed), err
		})
		if err != nil {
			return discoveryEntry{}, err
		}
		described.Digest = digest
	}
	described.URL = discoveryPath + url.PathEscape(string(entry.Skill.ID)) + "/" + url.PathEscape(string(entry.Revision.ID)) + "/" + artifact
	return described, nil
}

// descriptionOf is the frontmatter's description, cut to what installers take.
func descriptionOf(frontmatter json.RawMessage) string {
	var fields struct {
		Description string `json:"description"`
	}
	if err := json.Unmarshal(frontmatter, &fields); err != nil {
		return ""
	}
	units := utf16.Encode([]rune(fields.Description))
	if len(units) <= maxDiscoveryDescription {
		return fields.Description
	}
	end := maxDiscoveryDescription
	if utf16.IsSurrogate(rune(units[end-1])) && utf16.IsSurrogate(rune(units[end])) && units[end-1] < 0xdc00 {
		end-- // half a pair is no character
	}
	return string(utf16.Decode(units[:end]))
}

// The archives that artifactName chooses between.
const (
	tarArtifact = "skill.tar.gz"
	zipArtifact = "skill.zip"
)

// artifactName is SKILL.md for a skill of that one file, else a tar, or a zip when installers could not read a path in a tar.
func artifactName(revision sallyport.Revision) string {
	if len(revision.Components) == 1 {
		return registry.SkillFile
	}
	for _, c := range revision.Components {
		if !registry.FitsPlainTar(c.Path) {
			return zipArtifact
		}
	}
	return tarArtifact
}

// pack writes the archive, its files at the root as installers expect. The bytes are the same every time.
func (a *api) pack(ctx context.Context, p sallyport.Principal, entry registry.CatalogueEntry, artifact string) ([]byte, error) {
	revision, err := a.cfg.Catalogue.Content(ctx, p, entry)
	if err != nil {
		return nil, err
	}
	format := registry.ArchiveTarGz
	if artifact == zipArtifact {
		format = registry.ArchiveZip
	}
	var packed bytes.Buffer
	if err := registry.WriteArchive(&packed, revision, format, ""); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// downloadSkill answers with the artifact of one revision. Like everything else it is served to who can see the skill.
func downloadSkill(c *call, p sallyport.Principal) (answer, error) {
	ref := sallyport.SkillRef{SkillID: sallyport.SkillID(c.r.PathValue("skill"))}
	entry, err := c.api.cfg.Catalogue.Served(c.ctx(), p, ref, sallyport.RevisionID(c.r.PathValue("revision")))
	if err != nil {
		return answer{}, err
	}
	artifact := c.r.PathValue("artifact")
	if artifact != artifactName(entry.Revision) {
		return answer{}, sallyport.Errorf("httpapi.artifact", sallyport.CodeArtifactNotFound, "the revision has another artifact; the index names it")
	}
	if artifact == registry.SkillFile {
		revision, err := c.api.cfg.Catalogue.Content(c.ctx(), p, entry)
		if err != nil {
			return answer{}, err
		}
		file, exists := revision.Component(registry.SkillFile)
		if !exists {
			return answer{}, &sallyport.Error{Op: "httpapi.artifact", Code: sallyport.CodeInternal, Err: errors.New("the revision has no SKILL.md")}
		}
		document, err := newRaw(artifact, "text/markdown; charset=utf-8", file.SHA256, file.Content)
		return answer{raw: document}, err
	}
	packed, err := c.api.pack(c.ctx(), p, entry, artifact)
	if err != nil {
		return answer{}, err
	}
	media := "application/gzip"
	if artifact == zipArtifact {
		media = "application/zip"
	}
	archive, err := newRaw(artifact, media, sallyport.DigestOf(packed).Hex(), packed)
	return answer{raw: archive}, err
}

// artifactDigests remembers the digests of archives: a revision never changes, and packing one reads all of it.
type artifactDigests struct {
	mu   sync.Mutex
	kept map[sallyport.RevisionID]sallyport.Digest
}

// maxArtifactDigests bounds what is remembered; beyond it everything is forgotten and made again.
const maxArtifactDigests = 4 * discoveryMax

func (d *artifactDigests) digest(id sallyport.RevisionID, compute func() (sallyport.Digest, error)) (sallyport.Digest, error) {
	d.mu.Lock()
	known, found := d.kept[id]
	d.mu.Unlock()
	if found {
		return known, nil
	}
	digest, err := compute()
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept == nil || len(d.kept) >= maxArtifactDigests {
		d.kept = map[sallyport.RevisionID]sallyport.Digest{}
	}
	d.kept[id] = digest
	return digest, nil
}
