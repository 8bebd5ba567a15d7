package registry

import "slices"

// The rules of [Scan]. Each has exactly one row in [FindingCatalogue]; names are append-only.
const (
	RuleUnicodeTags      = "UNICODE_TAGS"
	RuleUnicodeBidi      = "UNICODE_BIDI"
	RuleUnicodeSelectors = "UNICODE_SELECTORS"
	RuleUnicodeInvisible = "UNICODE_INVISIBLE"
	RuleControl          = "CONTROL_CHARACTER"
	RuleWhitespaceWall   = "WHITESPACE_WALL"
	RuleLongLine         = "LONG_LINE"
	RuleHiddenComment    = "HIDDEN_COMMENT"
	RuleImageMetadata    = "IMAGE_METADATA"

	RuleLinkOutside    = "LINK_OUTSIDE"
	RuleLinkSuspicious = "LINK_SUSPICIOUS"
	RuleLinkLeaves     = "LINK_LEAVES"

	RuleSecret        = "SECRET"
	RuleSecretGeneric = "SECRET_GENERIC"

	RuleNetwork     = "NETWORK_USE"
	RulePipeToShell = "PIPE_TO_SHELL"
	RuleRemoteShell = "REMOTE_SHELL"
	RuleDecodeRun   = "DECODE_AND_RUN"
	RuleEncodedBlob = "ENCODED_BLOB"

	RuleInstallHook  = "INSTALL_HOOK"
	RuleAutorunFile  = "AUTORUN_FILE"
	RuleCodeOddPlace = "CODE_ODD_PLACE"
	RuleCodeBinary   = "CODE_BINARY"
	RuleOfficeMacro  = "OFFICE_MACRO"
	RuleOpaqueFile   = "OPAQUE_FILE"
)

// FindingInfo is one row of the catalogue of rules.
type FindingInfo struct {
	Rule     string
	Severity string
	// About says what the rule looks for and why it matters.
	About string
}

// findingCatalogue is the one table of rules. Nothing else about a rule's weight exists anywhere.
var findingCatalogue = []FindingInfo{
	{RuleUnicodeTags, SeverityError, "tag characters (U+E0000 to U+E007F) outside a flag: text that a model reads and a person does not see"},
	{RuleUnicodeBidi, SeverityError, "characters that reorder text (U+202A to U+202E, U+2066 to U+2069): what is shown is not what is read"},
	{RuleUnicodeSelectors, SeverityError, "variation selectors in a row, or from the supplement: each can carry a hidden byte"},
	{RuleUnicodeInvisible, SeverityWarning, "characters without width, fillers and direction marks where no script needs them"},
	{RuleControl, SeverityWarning, "control characters, such as escapes that move a terminal's cursor"},
	{RuleWhitespaceWall, SeverityWarning, "text behind 50 blank lines or 200 blanks in a line: out of sight"},
	{RuleLongLine, SeverityNote, "a line of more than 5000 bytes in a script or a document: hard to review"},
	{RuleHiddenComment, SeverityNote, "a comment in Markdown that is not shown when the file is rendered"},
	{RuleImageMetadata, SeverityNote, "an image with text in its metadata, or with bytes behind its end"},

	{RuleLinkOutside, SeverityNote, "a web address: content that is not part of the revision"},
	{RuleLinkSuspicious, SeverityWarning, "a web address that hides where it leads: a bare IP address, user information, a shortener, a paste or tunnel service, punycode"},
	{RuleLinkLeaves, SeverityNote, "a relative link out of the skill, or a file: address"},

	{RuleSecret, SeverityError, "a credential of a known form: private keys, AWS, GitHub, GitLab, Slack, Google, Stripe, OpenAI, Anthropic, npm, PyPI, Sallyport"},
	{RuleSecretGeneric, SeverityWarning, "a long random value assigned to a name such as password, secret, token or api_key"},

	{RuleNetwork, SeverityNote, "a script that uses the network"},
	{RulePipeToShell, SeverityWarning, "something downloaded goes straight into an interpreter"},
	{RuleRemoteShell, SeverityError, "a shell connected to a socket"},
	{RuleDecodeRun, SeverityWarning, "something decoded goes straight into an interpreter"},
	{RuleEncodedBlob, SeverityWarning, "500 or more base64 or hex digits in a row in a script or a document, not a data image"},

	{RuleInstallHook, SeverityWarning, "a package that runs code when it is installed"},
	{RuleAutorunFile, SeverityWarning, "a file that some tool runs by its name alone: conftest.py, sitecustomize.py, *.pth, editor tasks, hooks"},
	{RuleCodeOddPlace, SeverityNote, "a program in a file that is not declared as a script"},
	{RuleCodeBinary, SeverityError, "compiled code: it cannot be reviewed as text"},
	{RuleOfficeMacro, SeverityError, "an office document with macros"},
	{RuleOpaqueFile, SeverityWarning, "a binary file whose content the rules do not read: archives, PDF, office documents, data"},
}

// FindingCatalogue returns every rule, in table order.
func FindingCatalogue() []FindingInfo { return slices.Clone(findingCatalogue) }

func findingSeverity(rule string) string {
	for _, info := range findingCatalogue {
		if info.Rule == rule {
			return info.Severity
		}
	}
	return SeverityError
}
