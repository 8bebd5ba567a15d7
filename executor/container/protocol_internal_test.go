package container

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
)

// Every number and path that helper/protocol.h defines has the same value here.
func TestProtocolMatchesHelper(t *testing.T) {
	t.Parallel()
	header, err := os.ReadFile("helper/protocol.h")
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "protocol.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			ours[strings.ToLower(spec.Names[0].Name)] = literal.Value
		}
		return true
	})
	compared := 0
	for _, m := range regexp.MustCompile(`(?m)^#define ([A-Z_]+) +("[^"]*"|'.'|[0-9a-fx]+)`).FindAllStringSubmatch(string(header), -1) {
		name := strings.ToLower(strings.ReplaceAll(m[1], "_", ""))
		if strings.HasPrefix(m[1], "FD_") || m[1] == "FILTER_MAX_BYTES" {
			continue // PID 1's own
		}
		compared++
		if got := ours[name]; got != m[2] && number(got) != number(m[2]) {
			t.Errorf("%s is %s there and %q here", m[1], m[2], got)
		}
	}
	if compared < 40 {
		t.Errorf("compared %d names only", compared)
	}
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		return -int64(len(s)) - 1
	}
	return n
}

// The header that is written has the layout of the struct, and everything comes behind it in order.
func TestOrdersLayout(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := orders{
		argv: []string{"p", "s"}, env: []string{"A=b"}, filter: make([]byte, 16), stdin: []byte("in"), streamBytes: 7, cpuBudgetMicrosecs: 9,
		files:  []sallyport.Component{{Path: "x/y", Content: []byte("body")}},
		inputs: []sallyport.InputFile{{Name: "z", Content: []byte("!")}},
	}
	if err := o.write(&out); err != nil {
		t.Fatal(err)
	}
	const header = 14*4 + 9*8
	b := out.Bytes()
	if order.Uint64(b[14*4:]) != 2 || order.Uint64(b[14*4+8:]) != 7 || order.Uint64(b[header-8:]) != 9 || order.Uint32(b[7*4:]) != 2 {
		t.Errorf("header % x", b[:header])
	}
	rest := string(b[header+16:])
	if want := "p\x00s\x00A=b\x00in" + "\x00\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00x/ybody" + "\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00z!"; rest != want {
		t.Errorf("got %q, want %q", rest, want)
	}
	for _, bad := range []orders{{argv: []string{"a\x00b"}}, {argv: []string{"a"}, env: []string{strings.Repeat("x", configMaxBytes)}}, {argv: []string{"a"}, stdin: make([]byte, stdinMaxBytes+1)}} {
		if err := bad.write(&bytes.Buffer{}); err == nil {
			t.Error("orders that cannot be given were")
		}
	}
}
