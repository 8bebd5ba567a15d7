package registry

import (
	"fmt"
	"slices"
	"strings"
)

// The severities of a [Problem].
const (
	SeverityError   = "error"   // the skill is not usable
	SeverityWarning = "warning" // usable, not spec-clean
	SeverityNote    = "note"    // usable and spec-clean
)

// The codes of a [Problem]. Each has exactly one row in [ProblemCatalogue]; codes are append-only.
const (
	ProblemSkillMDMissing      = "SKILL_MD_MISSING"
	ProblemSkillMDCase         = "SKILL_MD_CASE"
	ProblemNotUTF8             = "NOT_UTF8"
	ProblemByteOrderMark       = "BYTE_ORDER_MARK"
	ProblemTextBeforeFence     = "TEXT_BEFORE_FENCE"
	ProblemFrontmatterMissing  = "FRONTMATTER_MISSING"
	ProblemFrontmatterUnclosed = "FRONTMATTER_UNCLOSED"
	ProblemFrontmatterTooLarge = "FRONTMATTER_TOO_LARGE"
	ProblemFenceLong           = "FENCE_LONG"
	ProblemFrontmatterKind     = "FRONTMATTER_NOT_MAPPING"

	ProblemYAMLInvalid      = "YAML_INVALID"
	ProblemYAMLRepaired     = "YAML_REPAIRED"
	ProblemYAMLDuplicateKey = "YAML_DUPLICATE_KEY"
	ProblemYAMLKeyNotText   = "YAML_KEY_NOT_TEXT"
	ProblemYAMLAliases      = "YAML_ALIASES"
	ProblemYAMLTooDeep      = "YAML_TOO_DEEP"
	ProblemYAMLDocuments    = "YAML_MULTIPLE_DOCUMENTS"

	ProblemNameMissing    = "NAME_MISSING"
	ProblemNameNotText    = "NAME_NOT_TEXT"
	ProblemNameUnsafe     = "NAME_UNSAFE"
	ProblemNameTooLong    = "NAME_TOO_LONG"
	ProblemNameCharacters = "NAME_CHARACTERS"
	ProblemNameNotASCII   = "NAME_NOT_ASCII"
	ProblemNameHyphens    = "NAME_HYPHENS"
	ProblemNameDirectory  = "NAME_NOT_DIRECTORY"
	ProblemNameReserved   = "NAME_RESERVED"

	ProblemDescriptionMissing = "DESCRIPTION_MISSING"
	ProblemDescriptionNotText = "DESCRIPTION_NOT_TEXT"
	ProblemDescriptionTooLong = "DESCRIPTION_TOO_LONG"
	ProblemDescriptionMarkup  = "DESCRIPTION_MARKUP"

	ProblemLicense         = "LICENSE_NOT_TEXT"
	ProblemCompatibility   = "COMPATIBILITY_INVALID"
	ProblemMetadata        = "METADATA_NOT_TEXT"
	ProblemMetadataCoerced = "METADATA_COERCED"
	ProblemAllowedTools    = "ALLOWED_TOOLS_NOT_TEXT"
	ProblemFieldUnknown    = "FIELD_UNKNOWN"
	ProblemBodyLong        = "BODY_LONG"

	ProblemSettings       = "SETTINGS_INVALID"
	ProblemSettingsPath   = "SETTINGS_UNKNOWN_PATH"
	ProblemSettingsSchema = "SETTINGS_SCHEMA"
	ProblemScriptNeeds    = "SCRIPT_NEEDS"

	ProblemUnsafePath     = "UNSAFE_PATH"
	ProblemSkillTooLarge  = "SKILL_TOO_LARGE"
	ProblemScriptTooLarge = "SCRIPT_TOO_LARGE"
	ProblemFileUnreadable = "FILE_UNREADABLE"
	ProblemFileSpecial    = "FILE_SPECIAL"
	ProblemSubmodule      = "GIT_SUBMODULE"
	ProblemLFSPointer     = "LFS_POINTER"
	ProblemShellCRLF      = "SCRIPT_CRLF"
	ProblemInvisible      = "PATH_INVISIBLE"
	ProblemScriptRuntime  = "SCRIPT_RUNTIME"
	ProblemLinkUnresolved = "LINK_UNRESOLVED"
	ProblemNestedSkill    = "NESTED_SKILL"
	ProblemSlugClash      = "SLUG_CLASH"
	ProblemSlugPlaced     = "SLUG_FROM_PATH"
	ProblemSkillNotSaved  = "SKILL_NOT_SAVED"
	ProblemConflict       = "REVISION_CONFLICT"
	ProblemNotListed      = "NOT_LISTED"
)

// ProblemInfo is one row of the catalogue of problems.
type ProblemInfo struct {
	Code     string
	Severity string
	// Rule is where the rule comes from: the specification's sentence in short.
	Rule string
}

// problemCatalogue is the one table of problem codes. Nothing else about a code exists anywhere.
var problemCatalogue = []ProblemInfo{
	{ProblemSkillMDMissing, SeverityError, "a skill is a directory with SKILL.md at its top"},
	{ProblemSkillMDCase, SeverityNote, "the file is named SKILL.md; skill.md is accepted"},
	{ProblemNotUTF8, SeverityWarning, "SKILL.md is UTF-8"},
	{ProblemByteOrderMark, SeverityWarning, "the file begins with a --- line"},
	{ProblemTextBeforeFence, SeverityWarning, "the file begins with a --- line"},
	{ProblemFrontmatterMissing, SeverityError, "the file begins with a --- line"},
	{ProblemFrontmatterUnclosed, SeverityError, "the frontmatter ends with a --- line"},
	{ProblemFenceLong, SeverityWarning, "the frontmatter ends with a --- line"},
	{ProblemFrontmatterTooLarge, SeverityError, "the frontmatter is at most 64 KiB"},
	{ProblemFrontmatterKind, SeverityError, "the frontmatter is a YAML mapping"},

	{ProblemYAMLInvalid, SeverityError, "the text is YAML"},
	{ProblemYAMLRepaired, SeverityWarning, "the text is YAML as it stands"},
	{ProblemYAMLDuplicateKey, SeverityError, "a key appears once in its mapping"},
	{ProblemYAMLKeyNotText, SeverityError, "a key is text"},
	{ProblemYAMLAliases, SeverityError, "aliases expand within a small bound"},
	{ProblemYAMLTooDeep, SeverityError, "nesting stays within a small bound"},
	{ProblemYAMLDocuments, SeverityError, "there is one YAML document"},

	{ProblemNameMissing, SeverityWarning, "name is required"},
	{ProblemNameNotText, SeverityWarning, "name is text"},
	{ProblemNameUnsafe, SeverityError, "a name is never a path"},
	{ProblemNameTooLong, SeverityWarning, "name has at most 64 characters"},
	{ProblemNameCharacters, SeverityWarning, "name has lower-case letters, digits and hyphens"},
	{ProblemNameNotASCII, SeverityWarning, "the strict profile is the specification's text: ASCII letters"},
	{ProblemNameHyphens, SeverityWarning, "name has no hyphen first or last and no double hyphen"},
	{ProblemNameDirectory, SeverityWarning, "name equals the directory's name"},
	{ProblemNameReserved, SeverityNote, "one upload service refuses names with its own product names"},

	{ProblemDescriptionMissing, SeverityError, "description is required and not blank"},
	{ProblemDescriptionNotText, SeverityWarning, "description is text"},
	{ProblemDescriptionTooLong, SeverityWarning, "description has at most 1024 characters"},
	{ProblemDescriptionMarkup, SeverityNote, "some upload services refuse angle brackets in description"},

	{ProblemLicense, SeverityWarning, "license is text"},
	{ProblemCompatibility, SeverityWarning, "compatibility is text of 1 to 500 characters"},
	{ProblemMetadata, SeverityWarning, "metadata maps text to text"},
	{ProblemMetadataCoerced, SeverityNote, "a number or a truth value in metadata counts as text"},
	{ProblemAllowedTools, SeverityWarning, "allowed-tools is one text, separated by spaces"},
	{ProblemFieldUnknown, SeverityWarning, "the top-level fields are six: " + strings.Join(specFields(), ", ")},
	{ProblemBodyLong, SeverityNote, "the body stays under 500 lines and about 5000 tokens"},

	{ProblemSettings, SeverityError, "sallyport.yaml has the keys scripts and kinds, as documented"},
	{ProblemSettingsPath, SeverityError, "sallyport.yaml names files that the skill has"},
	{ProblemSettingsSchema, SeverityError, "a schema is JSON Schema 2020-12 without remote references"},

	{ProblemScriptNeeds, SeverityNote, "a script says what it needs as PEP 723 or package.json have it"},

	{ProblemUnsafePath, SeverityError, "paths are plain and differ by more than case"},
	{ProblemSkillTooLarge, SeverityError, "a skill has a bounded number of files and bytes"},
	{ProblemScriptTooLarge, SeverityNote, "a script over the size limit is kept and will not run"},
	{ProblemFileUnreadable, SeverityError, "every file of a skill can be read"},
	{ProblemFileSpecial, SeverityWarning, "a skill holds files, not devices, pipes or sockets"},
	{ProblemSubmodule, SeverityWarning, "a skill holds files, not other repositories"},
	{ProblemLFSPointer, SeverityWarning, "a skill holds files, not pointers of Git LFS to files elsewhere"},
	{ProblemShellCRLF, SeverityNote, "lines of a shell script end in LF"},
	{ProblemScriptRuntime, SeverityNote, "a script names what runs it: by its extension, its first line or sallyport.yaml"},
	{ProblemInvisible, SeverityError, "a path has no characters that nobody sees"},
	{ProblemLinkUnresolved, SeverityWarning, "a symbolic link points to a file inside its skill"},
	{ProblemNestedSkill, SeverityNote, "a SKILL.md below a skill is a file of that skill"},
	{ProblemSlugClash, SeverityError, "two skills of one import have two slugs"},
	{ProblemSlugPlaced, SeverityNote, "two skills of one import have two slugs; a folder above can tell them apart"},
	{ProblemSkillNotSaved, SeverityError, "the skill can be saved where it should go"},
	{ProblemConflict, SeverityError, "of two who change a skill at once one is first"},
	{ProblemNotListed, SeverityNote, "a list of skills holds only what the strictest MCP host accepts"},
}

// ProblemCatalogue returns every row, in table order.
func ProblemCatalogue() []ProblemInfo { return slices.Clone(problemCatalogue) }

// severityOf returns the severity of code; an unknown code is an error.
func severityOf(code string) string {
	for _, info := range problemCatalogue {
		if info.Code == code {
			return info.Severity
		}
	}
	return SeverityError
}

// problem makes a Problem with the catalogue's severity. Line 0 means the whole file.
func problem(code, file string, line int, format string, args ...any) Problem {
	return Problem{Code: code, File: file, Line: line, Message: fmt.Sprintf(format, args...), Severity: severityOf(code)}
}

// hasErrors reports whether a problem makes the skill unusable.
func hasErrors(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity == SeverityError })
}

// specClean reports whether nothing but notes was found.
func specClean(problems []Problem) bool {
	return !slices.ContainsFunc(problems, func(p Problem) bool { return p.Severity != SeverityNote })
}

// firstError returns the message of the first error, for a sentence about the whole skill.
func firstError(problems []Problem) string {
	for _, p := range problems {
		if p.Severity != SeverityError {
			continue
		}
		if p.Line > 0 {
			return fmt.Sprintf("%s line %d: %s", p.File, p.Line, p.Message)
		}
		if p.File == "" { // the skill as a whole
			return p.Message
		}
		return p.File + ": " + p.Message
	}
	return ""
}
