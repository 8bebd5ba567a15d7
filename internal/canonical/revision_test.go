package canonical_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/canonical"
)

func hexSum(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func file(path string, kind sallyport.Kind, content string) sallyport.Component {
	return sallyport.Component{
		ID: sallyport.ComponentID("c-" + path), Path: path, Kind: kind, MediaType: "text/plain",
		Size: int64(len(content)), SHA256: hexSum(content), Mode: 0o644, Content: []byte(content),
	}
}

// sample is the revision of the vector, which was computed by another implementation.
func sample() []sallyport.Component {
	a := file("scripts/a.py", sallyport.KindScript, "print()\n")
	a.Script = &sallyport.ScriptSettings{
		Runtime:     "python",
		Input:       sallyport.InputStdin,
		InputSchema: json.RawMessage(`{ "type":"object", "properties":{"n":{"type":"integer"}} }`),
		Argv:        json.RawMessage(`"none"`),
		Limits:      sallyport.Limits{Timeout: 2 * time.Second, MemoryBytes: 1 << 20},
		Secrets:     []string{"A", "B"},
	}
	b := file("scripts/b.sh", sallyport.KindScript, "")
	b.Script = &sallyport.ScriptSettings{}
	return []sallyport.Component{b, file("SKILL.md", sallyport.KindDocument, "hello\n"), a}
}

func digest(tb testing.TB, components []sallyport.Component) sallyport.Digest {
	tb.Helper()
	d, err := canonical.RevisionDigest(components)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestRevisionDigestVectors(t *testing.T) {
	t.Parallel()
	if got, want := digest(t, sample()), sallyport.Digest("sha256:602ada16aeff705bc240f1a556c0905179567270d74c5e0a1eccd9715ecae66e"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := digest(t, nil), sallyport.Digest("sha256:c4986a17d883b6240928a47706a5eec66292b90e5bf714e205620ced8759ccc0"); got != want {
		t.Errorf("empty revision: got %s, want %s", got, want)
	}
}

func TestRevisionDigestIgnoresOrder(t *testing.T) {
	t.Parallel()
	want := digest(t, sample())
	for range 20 {
		components := sample()
		rand.Shuffle(len(components), func(i, j int) { components[i], components[j] = components[j], components[i] })
		before := slices.Clone(components)
		if got := digest(t, components); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		if !reflect.DeepEqual(before, components) {
			t.Fatal("the components were modified")
		}
	}
}

// uncounted are the fields that the digest leaves out, each with its reason. A new field must either change the
// digest or be listed here.
var uncounted = map[string]string{
	"ID":        "made anew for every revision; equal content has one digest",
	"MediaType": "a label for readers; the sandbox never sees it",
	"Mode":      "recorded, never needed to run",
	"Content":   "represented by SHA256, against which it is checked",
}

func TestEveryFieldCounts(t *testing.T) {
	t.Parallel()
	base := digest(t, sample())
	changes := map[string]func(c *sallyport.Component){
		"Path":   func(c *sallyport.Component) { c.Path += "x" },
		"Kind":   func(c *sallyport.Component) { c.Kind = sallyport.KindTemplate },
		"Size":   func(c *sallyport.Component) { c.Content = nil; c.Size++ },
		"SHA256": func(c *sallyport.Component) { c.Content = nil; c.SHA256 = hexSum("other") },
		"Script": func(c *sallyport.Component) { c.Script = nil },

		"Script.Runtime":     func(c *sallyport.Component) { c.Script.Runtime = "bash" },
		"Script.Input":       func(c *sallyport.Component) { c.Script.Input = sallyport.InputNone },
		"Script.InputSchema": func(c *sallyport.Component) { c.Script.InputSchema = json.RawMessage(`{"type":"object"}`) },
		"Script.Argv":        func(c *sallyport.Component) { c.Script.Argv = json.RawMessage(`"free"`) },
		"Script.Limits":      func(c *sallyport.Component) { c.Script.Limits = sallyport.Limits{} },
		"Script.Secrets":     func(c *sallyport.Component) { c.Script.Secrets = []string{"A"} },
		"Script.Confirm":     func(c *sallyport.Component) { c.Script.Confirm = true },

		"Script.Limits.Timeout":       func(c *sallyport.Component) { c.Script.Limits.Timeout += time.Millisecond },
		"Script.Limits.MemoryBytes":   func(c *sallyport.Component) { c.Script.Limits.MemoryBytes++ },
		"Script.Limits.Processes":     func(c *sallyport.Component) { c.Script.Limits.Processes++ },
		"Script.Limits.CPUMillis":     func(c *sallyport.Component) { c.Script.Limits.CPUMillis++ },
		"Script.Limits.ScratchBytes":  func(c *sallyport.Component) { c.Script.Limits.ScratchBytes++ },
		"Script.Limits.OutputBytes":   func(c *sallyport.Component) { c.Script.Limits.OutputBytes++ },
		"Script.Limits.ArtifactBytes": func(c *sallyport.Component) { c.Script.Limits.ArtifactBytes++ },
		"Script.Limits.CPUTime":       func(c *sallyport.Component) { c.Script.Limits.CPUTime += time.Millisecond },
		"Script.Limits.ArtifactFiles": func(c *sallyport.Component) { c.Script.Limits.ArtifactFiles++ },
	}
	seen := map[sallyport.Digest]string{base: "the base"}
	for name, change := range changes {
		components := sample()
		change(&components[2])
		got := digest(t, components)
		if other, taken := seen[got]; taken {
			t.Errorf("%s does not count: same digest as %s", name, other)
		}
		seen[got] = name
	}
	for name, change := range map[string]func(c *sallyport.Component){
		"ID":        func(c *sallyport.Component) { c.ID = "other" },
		"MediaType": func(c *sallyport.Component) { c.MediaType = "other" },
		"Mode":      func(c *sallyport.Component) { c.Mode = 0o755 },
		"Content":   func(c *sallyport.Component) { c.Content = nil },
	} {
		if _, listed := uncounted[name]; !listed {
			t.Errorf("%s is changed here but is not on the list of exclusions", name)
		}
		components := sample()
		change(&components[2])
		if got := digest(t, components); got != base {
			t.Errorf("%s counts, and should not: %s", name, uncounted[name])
		}
	}
	covered := func(prefix string, typ reflect.Type) {
		for field := range typ.Fields() {
			_, changed := changes[prefix+field.Name]
			_, excluded := uncounted[prefix+field.Name]
			if changed == excluded {
				t.Errorf("%s%s must be either hashed (with a change above) or excluded with a reason", prefix, field.Name)
			}
		}
	}
	covered("", reflect.TypeFor[sallyport.Component]())
	covered("Script.", reflect.TypeFor[sallyport.ScriptSettings]())
	covered("Script.Limits.", reflect.TypeFor[sallyport.Limits]())
}

func TestScriptSettingsThatMeanTheSame(t *testing.T) {
	t.Parallel()
	base := digest(t, sample())
	for name, change := range map[string]func(s *sallyport.ScriptSettings){
		"schema spacing and order": func(s *sallyport.ScriptSettings) {
			s.InputSchema = json.RawMessage(`{"properties":{"n":{"type":"integer"}},"type":"object"}`)
		},
		"the default input":    func(s *sallyport.ScriptSettings) { s.Input = "" },
		"the order of secrets": func(s *sallyport.ScriptSettings) { s.Secrets = []string{"B", "A"} },
		"argv spacing":         func(s *sallyport.ScriptSettings) { s.Argv = json.RawMessage(` "none" `) },
	} {
		components := sample()
		change(components[2].Script)
		if got := digest(t, components); got != base {
			t.Errorf("%s changes the digest", name)
		}
	}
	// No schema, and a schema that allows everything, are different settings.
	with, without := sample(), sample()
	with[2].Script.InputSchema, without[2].Script.InputSchema = json.RawMessage(`{}`), nil
	if digest(t, with) == digest(t, without) {
		t.Error("an absent schema and an empty one have the same digest")
	}
}

// A byte that moves from one field to its neighbour changes the digest.
func TestFieldBoundaries(t *testing.T) {
	t.Parallel()
	one := []sallyport.Component{file("a/b", sallyport.KindDocument, "x"), file("c", sallyport.KindDocument, "y")}
	two := []sallyport.Component{file("a/b", sallyport.KindDocument, "y"), file("c", sallyport.KindDocument, "x")}
	three := []sallyport.Component{file("a", sallyport.KindDocument, "x"), file("bc", sallyport.KindDocument, "y")}
	lf := []sallyport.Component{file("a", sallyport.KindScript, "x\n")}
	crlf := []sallyport.Component{file("a", sallyport.KindScript, "x\r\n")}
	all := []sallyport.Digest{digest(t, one), digest(t, two), digest(t, three), digest(t, lf), digest(t, crlf)}
	slices.Sort(all)
	if len(slices.Compact(all)) != 5 {
		t.Error("two different revisions have one digest")
	}
}

func TestRevisionDigestRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(c []sallyport.Component) []sallyport.Component
		want   string
	}{
		"content changed by one byte": {func(c []sallyport.Component) []sallyport.Component { c[2].Content[0] ^= 1; return c }, "not what its sha256 says"},
		"content cut": {func(c []sallyport.Component) []sallyport.Component {
			c[2].Content = c[2].Content[:3]
			return c
		}, "not what its sha256 says"},
		"size that lies": {func(c []sallyport.Component) []sallyport.Component { c[2].Size++; return c }, "not what its sha256 says"},
		"empty content of a file that is not empty": {func(c []sallyport.Component) []sallyport.Component {
			c[2].Content = []byte{}
			return c
		}, "not what its sha256 says"},
		"one path twice": {func(c []sallyport.Component) []sallyport.Component { return append(c, c[0]) }, "two components"},
		"negative size":  {func(c []sallyport.Component) []sallyport.Component { c[0].Content, c[0].Size = nil, -1; return c }, "size and sha256"},
		"no sha256":      {func(c []sallyport.Component) []sallyport.Component { c[0].SHA256 = ""; return c }, "size and sha256"},
		"sha256 in upper case": {func(c []sallyport.Component) []sallyport.Component {
			c[0].SHA256 = strings.ToUpper(c[0].SHA256)
			return c
		}, "size and sha256"},
		"sha256 with a prefix": {func(c []sallyport.Component) []sallyport.Component { c[0].SHA256 = "sha256:" + c[0].SHA256; return c }, "size and sha256"},
		"no kind":              {func(c []sallyport.Component) []sallyport.Component { c[0].Kind = ""; return c }, "no kind"},
		"path not UTF-8":       {func(c []sallyport.Component) []sallyport.Component { c[0].Path = "a\xff"; return c }, "not valid UTF-8"},
		"secret not UTF-8":     {func(c []sallyport.Component) []sallyport.Component { c[2].Script.Secrets = []string{"\xff"}; return c }, "not valid UTF-8"},
		"half a millisecond": {func(c []sallyport.Component) []sallyport.Component {
			c[2].Script.Limits.Timeout = time.Second + 1
			return c
		}, "milliseconds"},
		"schema with a duplicate key": {func(c []sallyport.Component) []sallyport.Component {
			c[2].Script.InputSchema = json.RawMessage(`{"a":1,"a":2}`)
			return c
		}, "canonical form"},
		"argv that is not JSON": {func(c []sallyport.Component) []sallyport.Component {
			c[2].Script.Argv = json.RawMessage(`none`)
			return c
		}, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := canonical.RevisionDigest(test.change(sample()))
			if got != "" || sallyport.CodeOf(err) != sallyport.CodeInternal || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v; want INTERNAL with %q", got, err, test.want)
			}
		})
	}
}
