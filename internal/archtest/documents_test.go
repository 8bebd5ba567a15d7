package archtest_test

import (
	"errors"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// code is a span of code in a Markdown text.
	code = regexp.MustCompile("`([^`\n]+)`")
	// symbol is package.Name or package.Name.Member, with or without a call's brackets.
	symbol = regexp.MustCompile(`^([a-z][a-z0-9]*)\.([A-Za-z]\w*)(?:\.([A-Za-z]\w*))?(?:\(\))?$`)
	// testName is the name of a test, a benchmark, a fuzz target or an example.
	testName = regexp.MustCompile(`^(?:Test|Benchmark|Fuzz|Example)[A-Z]\w*$`)
	// filePath is a file or folder of this repository, with at least one slash.
	filePath = regexp.MustCompile(`^[\w.-]+(?:/[\w.-]+)*/(?:[\w.-]+)?$|^[\w.-]+(?:/[\w.-]+)+$`)
	// lineNumber is a reference that goes stale.
	lineNumber = regexp.MustCompile(`\.go:\d+|\.go#L\d+`)
)

// TestDocuments checks what the documents say in code spans: that symbols like run.Service, tests and paths exist.
func TestDocuments(t *testing.T) {
	t.Parallel()
	declared, tests := declarations(module(t))
	for _, document := range documents(t) {
		text := read(t, filepath.Join(root, document))
		if cited := lineNumber.FindString(text); cited != "" {
			t.Errorf("%s cites the line %q; name the symbol instead", document, cited)
		}
		for _, match := range code.FindAllStringSubmatch(text, -1) {
			span := match[1]
			switch {
			case testName.MatchString(span):
				if !tests[span] {
					t.Errorf("%s names the test `%s`, and there is none of that name", document, span)
				}
			case symbol.MatchString(span):
				parts := symbol.FindStringSubmatch(span)
				names, ours := declared[parts[1]]
				name := parts[2]
				if parts[3] != "" {
					name += "." + parts[3]
				}
				if ours && !names[name] && !isFile(span) && ast.IsExported(parts[2]) {
					t.Errorf("%s names `%s`, and package %s declares no %s", document, span, parts[1], name)
				}
			case filePath.MatchString(span):
				if first, _, _ := strings.Cut(span, "/"); isDir(first) && !exists(span) {
					t.Errorf("%s names the path `%s`, and there is none", document, span)
				}
			}
		}
	}
}

// documents lists the Markdown files that speak of this repository.
func documents(tb testing.TB) []string {
	tb.Helper()
	var names []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		slash := filepath.ToSlash(relative)
		switch {
		case entry.IsDir() && slash != "." && slash != "docs" && !strings.HasPrefix(slash, "docs/"):
			return fs.SkipDir
		case !entry.IsDir() && path.Ext(slash) == ".md":
			names = append(names, slash)
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	if len(names) == 0 {
		tb.Fatal("there are no documents")
	}
	return names
}

func exists(name string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
	return !errors.Is(err, fs.ErrNotExist)
}

func isDir(name string) bool {
	info, err := os.Stat(filepath.Join(root, name))
	return err == nil && info.IsDir()
}

// isFile tells skill.go from the symbol of a package named skill.
func isFile(span string) bool { return strings.HasSuffix(span, ".go") || exists(span) }

// declarations returns, by package name, every declared name, Type.Method and Type.Field; and the names of all tests.
func declarations(packages map[string]*pkg) (declared map[string]map[string]bool, tests map[string]bool) {
	declared, tests = map[string]map[string]bool{}, map[string]bool{}
	for _, p := range packages {
		for _, file := range p.tests {
			for _, declaration := range file.Decls {
				if function, ok := declaration.(*ast.FuncDecl); ok {
					tests[function.Name.Name] = true
				}
			}
		}
		if p.name == "" || p.name == "main" {
			continue
		}
		names := declared[p.name]
		if names == nil {
			names = map[string]bool{}
			declared[p.name] = names
		}
		for _, file := range p.files {
			for _, declaration := range file.Decls {
				declare(names, declaration)
			}
		}
	}
	return declared, tests
}

func declare(names map[string]bool, declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil && len(d.Recv.List) == 1 {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		names[name] = true
	case *ast.GenDecl:
		if d.Tok == token.IMPORT {
			return
		}
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names[name.Name] = true
				}
			case *ast.TypeSpec:
				names[s.Name.Name] = true
				declareMembers(names, s)
			}
		}
	}
}

func declareMembers(names map[string]bool, spec *ast.TypeSpec) {
	var list *ast.FieldList
	switch kind := spec.Type.(type) {
	case *ast.StructType:
		list = kind.Fields
	case *ast.InterfaceType:
		list = kind.Methods
	default:
		return
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			names[spec.Name.Name+"."+name.Name] = true
		}
	}
}

func receiver(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
