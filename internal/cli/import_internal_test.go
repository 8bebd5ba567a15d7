package cli

import (
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/registry"
)

// What an import ends with: 0 while something is there afterwards, 14 when nothing but somebody else's change is in the way, 10 else.
func TestOutcomeOfAnImport(t *testing.T) {
	t.Parallel()
	skill := func(result, code string) registry.ImportedSkill {
		return registry.ImportedSkill{Result: result, Problems: []registry.Problem{{Code: "FIELD_UNKNOWN"}, {Code: code}}}
	}
	conflict := skill(registry.ResultRefused, registry.ProblemConflict)
	invalid := skill(registry.ResultRefused, registry.ProblemDescriptionMissing)
	imported := skill(registry.ResultImported, registry.ProblemBodyLong)
	for name, test := range map[string]struct {
		skills []registry.ImportedSkill
		code   sallyport.Code
		exit   int
	}{
		"nothing found":             {nil, sallyport.CodeSkillInvalid, 10},
		"all imported":              {[]registry.ImportedSkill{imported, imported}, "", 0},
		"one of two is invalid":     {[]registry.ImportedSkill{imported, invalid}, "", 0},
		"all are invalid":           {[]registry.ImportedSkill{invalid, invalid}, sallyport.CodeSkillInvalid, 10},
		"a conflict":                {[]registry.ImportedSkill{conflict}, sallyport.CodeRevisionConflict, 14},
		"a conflict and an import":  {[]registry.ImportedSkill{imported, conflict}, sallyport.CodeRevisionConflict, 14},
		"a conflict and an invalid": {[]registry.ImportedSkill{conflict, invalid}, sallyport.CodeSkillInvalid, 10},
		"all three":                 {[]registry.ImportedSkill{conflict, invalid, imported}, "", 0},
	} {
		report := registry.ImportReport{Skills: test.skills}
		for _, s := range test.skills {
			report.Totals.Skills++
			switch s.Result {
			case registry.ResultImported:
				report.Totals.Imported++
			case registry.ResultRefused:
				report.Totals.Refused++
			}
		}
		err := noneImported(report)
		if sallyport.CodeOf(err) != test.code && (err != nil || test.code != "") || exitCode(err) != test.exit {
			t.Errorf("%s: %v, exit %d; want %q, exit %d", name, err, exitCode(err), test.code, test.exit)
		}
	}
}
