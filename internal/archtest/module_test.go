package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// modulePath is the import path of the root package.
const modulePath = "github.com/sallyport-dev/sallyport"

// root is the folder of the root package, seen from this one.
const root = "../.."

// pkg is one package of the module: a folder with Go files.
type pkg struct {
	dir   string // slash-separated from the root; "." is the root package
	name  string
	files []*ast.File // without tests
	tests []*ast.File
}

// imports returns what the files import, sorted.
func imports(files []*ast.File) []string {
	var paths []string
	for _, file := range files {
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			paths = append(paths, name)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// module parses every Go file of the module. It opens the files itself: a test that leaves that to a sub-process is answered
// from the test cache after the files have changed.
func module(tb testing.TB) map[string]*pkg {
	tb.Helper()
	packages := map[string]*pkg{}
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			_, nested := os.Stat(filepath.Join(name, "go.mod"))
			hidden := strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
			if name != root && (hidden || base == "testdata" || base == "node_modules" || base == "bin" || nested == nil) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
			return nil
		}
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(relative)
		p := packages[dir]
		if p == nil {
			p = &pkg{dir: dir}
			packages[dir] = p
		}
		if strings.HasSuffix(base, "_test.go") {
			p.tests = append(p.tests, file)
			return nil
		}
		p.files, p.name = append(p.files, file), file.Name.Name
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	if len(packages) < 10 || packages["."] == nil {
		tb.Fatalf("only %d packages found below %s", len(packages), root)
	}
	return packages
}

// within returns the folder of a package of this module, and false for any other import.
func within(importPath string) (string, bool) {
	if importPath == modulePath {
		return ".", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

// importPath is the inverse of within.
func importPath(dir string) string { return path.Join(modulePath, dir) }

func read(tb testing.TB, name string) string {
	tb.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}
