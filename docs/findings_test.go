package docs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport/registry"
)

const findingsIntro = `# Findings

Generated from the catalogue in ` + "`registry/findings_catalogue.go`" + `; mend it with ` + "`make generate`" + `.

` + "`sallyport skill findings SLUG`" + `, ` + "`GET /v1/skills/{skill}/findings`" + ` and the question of ` + "`sallyport grant issue`" + ` show what static rules find
in exactly the bytes of one revision. Nothing is executed and nothing is fetched. The answer names the digest and the rule set it is about,
so it can never be taken for the verdict on other bytes.

- Findings help a reviewer. They are no proof: code can do harm that no rule knows, and a grant still pins the bytes that were read.
- *scanned*: the rules could be applied to every file. *not_scannable*: some file should be text and is not UTF-8, or its header cannot
  be read. That is never a pass.
- *clean*: scanned, and nothing but notes.
- A message never holds the secret it is about, nor the characters it warns of.
- A skill cannot set findings aside. A reader can, for one answer (` + "`--exclude tests/`" + `), and an operator for all
  (` + "`finding_exclusions`" + `); the answer counts what each pattern set aside. What cannot be scanned stays so.
- With ` + "`publish_requires_clean: true`" + ` a revision that is not clean is refused with SKILL_INVALID, over every surface and on import too, until
  a principal with ` + "`grants:write`" + ` publishes it with an override: ` + "`sallyport skill publish SLUG --override REASON`" + `. The reason is in the audit trail before
  anything changes.

The rules of the set ` + "`" + registry.FindingRuleSet + "`" + `:

| rule | severity | looks for |
|---|---|---|
`

// TestFindingsDocument holds docs/findings.md against the catalogue of rules.
func TestFindingsDocument(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(findingsIntro)
	for _, info := range registry.FindingCatalogue() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", info.Rule, info.Severity, info.About)
	}
	if *update {
		if err := os.WriteFile("findings.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("findings.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("docs/findings.md is stale, run make generate (-want +got):\n%s", diff)
	}
}
