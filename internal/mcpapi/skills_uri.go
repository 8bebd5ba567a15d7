package mcpapi

import (
	"encoding/base32"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// The URIs of skills, one for what is published and one for each immutable revision:
//
//	skill://<place>/<slug>/<file>                      when the frontmatter's name is the slug, as it is after an import
//	skill://<place>/<slug>/<name>/<file>               when it is another
//	skill://<place>/<slug>@<revision id>/<name>/<file> one revision, whatever is published
//
// <place> is personal or a team. The last segment before SKILL.md is the frontmatter's name, as hosts demand; a skill whose name
// no host accepts has its slug there, so that its files have URIs too, and is in no list. A slug has no @, so no two skills share
// a URI. Every byte that is not a letter, a digit or one of -._~ is percent-encoded.
const skillScheme = "skill://"

// personalPlace is the first segment of a caller's own skills.
const personalPlace = "personal"

// plainPlace is a team that stands for itself; encodedPlace precedes the base32 form of any other.
var plainPlace = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`)

const encodedPlace = "x--"

// placeOf is the first segment: a valid host name, different for different teams.
func placeOf(team sallyport.TeamID) string {
	name := string(team)
	switch {
	case team == "":
		return personalPlace
	case name != personalPlace && plainPlace.MatchString(name) && !strings.HasPrefix(name, encodedPlace):
		return name
	}
	return encodedPlace + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(name)))
}

// teamAt finds the caller's team for a place; false when there is none.
func teamAt(p sallyport.Principal, place string) (sallyport.TeamID, bool) {
	if place == personalPlace {
		return "", true
	}
	i := slices.IndexFunc(p.Teams, func(team sallyport.TeamID) bool { return team != "" && placeOf(team) == place })
	if i < 0 {
		return "", false
	}
	return p.Teams[i], true
}

// skillRoot is the directory of a skill. pinned names the revision; else the URI is the one of whatever is published.
func skillRoot(entry registry.CatalogueEntry, pinned bool) string {
	slug := entry.Skill.Slug
	name := registry.ListedName(entry.Revision.Frontmatter)
	if name == "" {
		name = slug
	}
	root := skillScheme + placeOf(entry.Skill.TeamID) + "/" + slug
	switch {
	case pinned:
		return root + "@" + string(entry.Revision.ID) + "/" + name
	case name != slug:
		return root + "/" + name
	}
	return root
}

// fileURI is the URI of a file below root.
func fileURI(root, path string) string {
	var b strings.Builder
	b.WriteString(root)
	for segment := range strings.SplitSeq(path, "/") {
		b.WriteByte('/')
		b.WriteString(escapeSegment(segment))
	}
	return b.String()
}

func escapeSegment(segment string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(segment) {
		switch c := segment[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// address is what a skill URI names, before anything was looked up.
type address struct {
	place    string
	slug     string
	revision sallyport.RevisionID // empty for the published one
	rest     []string             // decoded segments after the slug: the name when it is there, then the path
}

// maxURIBytes bounds a URI: the longest path, every byte of it encoded, and what stands before it.
const maxURIBytes = 3*sallyport.PathMaxLength + 1024

// parseSkillURI reads a URI in any percent-encoding; false when it can name nothing of ours.
func parseSkillURI(uri string) (address, bool) {
	rest, found := strings.CutPrefix(uri, skillScheme)
	if !found || len(uri) > maxURIBytes || strings.ContainsAny(rest, "?#\\") {
		return address{}, false
	}
	segments := strings.Split(rest, "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil || plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, "/\x00") {
			return address{}, false
		}
		segments[i] = plain
	}
	if len(segments) < 2 {
		return address{}, false
	}
	a := address{place: segments[0], rest: segments[2:]}
	slug, revision, pinned := strings.Cut(segments[1], "@")
	if !sallyport.ValidSlug(slug) || pinned && (revision == "" || len(a.rest) == 0) {
		return address{}, false
	}
	a.slug, a.revision = slug, sallyport.RevisionID(revision)
	return a, true
}
