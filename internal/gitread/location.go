package gitread

import (
	"net/url"
	"strings"
	"unicode"

	"github.com/sallyport-dev/sallyport"
)

// Location is a repository and what to read of it.
type Location struct {
	// URL of the repository without its fragment, or a path.
	URL string
	// Ref is a branch, a tag, a full ref name or a commit of 40 hex digits; empty means what HEAD names.
	Ref string
	// Subdir is the folder to read, plain; empty means all.
	Subdir string
}

// ParseURL takes a URL for a git repository when its scheme begins with git+, its path ends in .git or its fragment says ref or subdir:
// https://HOST/NAME.git#ref=main&subdir=skills/pdf. Anything else is false. The error is INVALID_ARGUMENT.
func ParseURL(raw string) (Location, bool, error) {
	address, fragment, _ := strings.Cut(raw, "#")
	plain, named := strings.CutPrefix(address, "git+")
	u, err := url.Parse(plain)
	if err != nil {
		return Location{}, false, nil //nolint:nilerr // whoever fetches it says what is wrong
	}
	scheme := strings.ToLower(u.Scheme)
	switch {
	case named && scheme != "https" && scheme != "http", !named && (scheme == "git" || scheme == "ssh" || scheme == "file"):
		return Location{}, true, invalid("git is spoken over https only; write git+https://HOST/PATH, or import a clone from its folder")
	case !named && !strings.HasSuffix(strings.TrimRight(u.Path, "/"), ".git") && !speaksOfGit(fragment):
		return Location{}, false, nil
	case u.RawQuery != "" || u.ForceQuery:
		return Location{}, true, invalid("the URL of a git repository has no query; name a branch, a tag or a commit with #ref=NAME")
	}
	at, err := ParseFragment(fragment)
	at.URL = plain
	return at, true, err
}

func speaksOfGit(fragment string) bool {
	return strings.HasPrefix(fragment, "ref=") || strings.HasPrefix(fragment, "subdir=")
}

// ParseFragment reads ref=NAME&subdir=PATH, percent-encoded where it must be. The error is INVALID_ARGUMENT.
func ParseFragment(fragment string) (Location, error) {
	var at Location
	if fragment == "" {
		return at, nil
	}
	for part := range strings.SplitSeq(fragment, "&") {
		key, value, _ := strings.Cut(part, "=")
		value, err := url.PathUnescape(value)
		switch {
		case err != nil || value == "":
			return at, invalid("what follows the # cannot be read; write #ref=NAME&subdir=PATH")
		case key == "ref" && at.Ref == "":
			at.Ref = value
		case key == "subdir" && at.Subdir == "":
			at.Subdir = strings.Trim(value, "/")
		default:
			return at, invalid("what follows the # cannot be read; write #ref=NAME&subdir=PATH, each at most once")
		}
	}
	if err := checkRef(at.Ref); err != nil {
		return at, err
	}
	if at.Subdir == "" {
		return at, nil
	}
	if err := sallyport.CheckPath(at.Subdir); err != nil {
		return at, invalid("subdir is no plain path: %s", sallyport.Public(err).Message)
	}
	return at, nil
}

// checkRef refuses what git refuses, and what some program could take for an option or an expression.
func checkRef(ref string) error {
	bad := len(ref) > 255 || strings.HasPrefix(ref, "-") || strings.HasPrefix(ref, "/") || strings.HasSuffix(ref, "/") ||
		strings.HasSuffix(ref, ".") || strings.Contains(ref, "..") || strings.Contains(ref, "//") || strings.Contains(ref, "@{") || ref == "@" ||
		strings.ContainsAny(ref, " ~^:?*[\\") || strings.ContainsFunc(ref, unicode.IsControl) || strings.ToValidUTF8(ref, "") != ref
	for part := range strings.SplitSeq(ref, "/") {
		bad = bad || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") || strings.HasPrefix(part, "-")
	}
	if bad {
		return invalid("ref is no name of a branch, a tag or a commit; write it as git prints it")
	}
	return nil
}

// asCommit returns the commit that ref spells out.
func asCommit(ref string) (Hash, bool) {
	if len(ref) != 40 {
		return Hash{}, false
	}
	for _, c := range ref {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return Hash{}, false
		}
	}
	return hashOf(strings.ToLower(ref)), true
}

// candidates are the full names that a ref may stand for.
func candidates(ref string) []string {
	if strings.HasPrefix(ref, "refs/") || ref == "HEAD" {
		return []string{ref}
	}
	return []string{"refs/heads/" + ref, "refs/tags/" + ref}
}

// choose finds the object that ref names; look gives the hash of a full name.
func choose(ref string, look func(name string) (Hash, bool)) (Hash, error) {
	if ref == "" {
		ref = "HEAD"
	}
	var found []Hash
	for _, name := range candidates(ref) {
		if hash, ok := look(name); ok {
			found = append(found, hash)
		}
	}
	switch {
	case len(found) == 0 && ref == "HEAD":
		return Hash{}, invalid("the git repository has no default branch; name one with #ref=NAME")
	case len(found) == 0:
		return Hash{}, invalid("the git repository has no branch and no tag of that name; a commit is written with all its 40 digits")
	case len(found) > 1 && found[0] != found[1]:
		return Hash{}, invalid("the git repository has a branch and a tag of that name; write refs/heads/NAME or refs/tags/NAME")
	}
	return found[0], nil
}
