package runtimes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// Bounds of what is looked at in one root.
const (
	maxListed      = 50_000
	maxPackageJSON = 1 << 20
)

var pythonVersion = regexp.MustCompile(`^(?:python|pypy)([0-9]+\.[0-9]+)$`)

// Packages lists what scripts of a row of the allow-list can import beside their own files and the standard library: the packages of its
// root, or of the host where it has none. It reads names, never code. Nil for an interpreter whose packages are not known.
func Packages(ctx context.Context, row sallyport.Interpreter) (list []sallyport.Package, err error) {
	folder := row.Root
	if folder == "" {
		folder = "/"
	}
	if row.Fault != "" || !path.IsAbs(row.Program) {
		return nil, nil
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	s := &scan{ctx: ctx, root: root}
	switch base := strings.TrimRight(path.Base(row.Program), "0123456789."); base {
	case "python", "pypy":
		err = s.python(row.Program)
	case "node", "nodejs":
		err = s.node()
	default:
		return nil, nil
	}
	slices.SortFunc(s.found, func(a, b sallyport.Package) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	return slices.Compact(s.found), err
}

type scan struct {
	ctx    context.Context //nolint:containedctx // one call's
	root   *os.Root
	listed int
	found  []sallyport.Package
}

// list returns the names in a folder of the root, nil when there is none. Links are followed inside.
func (s *scan) list(dir string) (at string, names []string, err error) {
	if err := s.ctx.Err(); err != nil {
		return "", nil, err
	}
	at, err = resolveIn(s.root, strings.TrimPrefix(dir, "/"))
	if err != nil {
		return "", nil, nil //nolint:nilerr // a circle of links is no folder
	}
	info, err := s.root.Lstat(at)
	if err != nil || !info.IsDir() {
		return "", nil, nil //nolint:nilerr // it is not there
	}
	names, err = readNames(s.root, at)
	if errors.Is(err, fs.ErrPermission) {
		return "", nil, nil
	}
	if s.listed += len(names); s.listed > maxListed {
		return "", nil, refused("it has too many packages to list")
	}
	return at, names, err
}

// python lists the distributions of an interpreter, which finds them relative to itself.
func (s *scan) python(program string) error {
	resolved, err := resolveIn(s.root, strings.TrimPrefix(program, "/"))
	if err != nil {
		return err
	}
	resolved = "/" + resolved
	version := ""
	for _, p := range []string{program, resolved} {
		if m := pythonVersion.FindStringSubmatch(path.Base(p)); m != nil {
			version = m[1]
		}
	}
	var prefixes []string
	for _, p := range []string{program, resolved} {
		if prefix := path.Dir(path.Dir(p)); !slices.Contains(prefixes, prefix) {
			prefixes = append(prefixes, prefix)
		}
	}
	if version == "" {
		if version, err = s.onlyPython(prefixes); err != nil {
			return err
		}
	}
	s.found = append(s.found, sallyport.Package{Language: sallyport.LanguagePython, Name: "python", Version: version})
	for _, prefix := range prefixes {
		dirs := []string{prefix + "/lib/python3/dist-packages"}
		bases := []string{prefix + "/lib/python" + version, prefix + "/lib64/python" + version}
		if prefix == "/usr" {
			bases = append(bases, "/usr/local/lib/python"+version) // Debian's own
		}
		for _, base := range bases {
			dirs = append(dirs, base+"/site-packages", base+"/dist-packages")
		}
		for _, dir := range dirs {
			if err := s.distributions(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// onlyPython is the version of the one library there is, for an interpreter whose name has none.
func (s *scan) onlyPython(prefixes []string) (string, error) {
	versions := map[string]bool{}
	for _, prefix := range prefixes {
		_, names, err := s.list(prefix + "/lib")
		if err != nil {
			return "", err
		}
		for _, name := range names {
			if m := pythonVersion.FindStringSubmatch(name); m != nil {
				versions[m[1]] = true
			}
		}
	}
	if len(versions) != 1 {
		return "", nil
	}
	for version := range versions {
		return version, nil
	}
	return "", nil
}

var distribution = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._]*?(?:-[A-Za-z][A-Za-z0-9._]*)*?)-([0-9][^-]*)(?:-py[0-9.]+)?\.(?:dist|egg)-info$`)

// distributions reads the names of the folders that installers leave.
func (s *scan) distributions(dir string) error {
	_, names, err := s.list(dir)
	for _, name := range names {
		if m := distribution.FindStringSubmatch(name); m != nil {
			s.found = append(s.found, sallyport.Package{Language: sallyport.LanguagePython, Name: normalName(m[1]), Version: m[2]})
		}
	}
	return err
}

var separators = regexp.MustCompile(`[-_.]+`)

// normalName is a distribution's name as Python's indexes compare it.
func normalName(name string) string { return strings.ToLower(separators.ReplaceAllString(name, "-")) }

// node lists the packages that a script below /skill finds: Node looks in node_modules of every folder above it, and Debian's in two more.
func (s *scan) node() error {
	s.found = append(s.found, sallyport.Package{Language: sallyport.LanguageNode, Name: "node"})
	for _, dir := range []string{"/node_modules", "/usr/share/nodejs", "/usr/lib/nodejs"} {
		at, names, err := s.list(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if !strings.HasPrefix(name, "@") {
				s.nodePackage(path.Join(at, name), name)
				continue
			}
			_, scoped, err := s.list(path.Join("/", at, name))
			if err != nil {
				return err
			}
			for _, inner := range scoped {
				s.nodePackage(path.Join(at, name, inner), name+"/"+inner)
			}
		}
	}
	return nil
}

// nodePackage reads the version of a package, when it is one.
func (s *scan) nodePackage(dir, name string) {
	at, err := resolveIn(s.root, path.Join(dir, "package.json"))
	if err != nil {
		return
	}
	if info, err := s.root.Lstat(at); err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := s.root.Open(at)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	var described struct {
		Version string `json:"version"`
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPackageJSON))
	if err != nil || json.Unmarshal(data, &described) != nil || len(described.Version) > 64 {
		described.Version = ""
	}
	s.found = append(s.found, sallyport.Package{Language: sallyport.LanguageNode, Name: name, Version: described.Version})
}
