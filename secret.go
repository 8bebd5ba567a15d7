package sallyport

import (
	"slices"
	"strings"
	"time"
)

// SecretInfo is what anybody may learn about a tenant's secret: everything but its value.
type SecretInfo struct {
	Name      string      `json:"name"`
	CreatedAt time.Time   `json:"created_at"`
	UpdatedAt time.Time   `json:"updated_at"` // when the value was set last
	UpdatedBy PrincipalID `json:"updated_by"`
}

// The bounds of secrets. A tenant has at most MaxSecrets of them, and a value is 1 to MaxSecretBytes bytes without NUL.
const (
	SecretNameMaxLength = 64
	MaxSecrets          = 128
	MaxSecretBytes      = 64 << 10
)

// reservedSecretNames are variables that the run sets, that change which code an interpreter, its loader or a shell loads, or that
// steer where a program looks for its settings. A secret must not be able to do any of that.
var reservedSecretNames = []string{
	"PATH", "HOME", "LANG", "LANGUAGE", "TMPDIR", "TMP", "TEMP", "TZ", "TZDIR", "PWD", "OLDPWD", "SHLVL", "SHELL", "USER", "LOGNAME", "UID", "EUID",
	"PPID", "HOSTNAME", "TERM", "IFS", "ENV", "BASHOPTS", "SHELLOPTS", "CDPATH", "GLOBIGNORE", "PROMPT_COMMAND", "PS4",
	"EDITOR", "VISUAL", "PAGER", "OPTIND", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN", "RESOLV_HOST_CONF",
	"GETCONF_DIR", "GLIBC_TUNABLES", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "SSLKEYLOGFILE",
	"EXECIGNORE", "FUNCNEST", "HISTFILE", "INPUTRC", "POSIXLY_CORRECT", "TIMEFORMAT", "TMOUT", "COLUMNS", "LINES", "TERMINFO", "TERMINFO_DIRS",
}

// reservedSecretPrefixes are families of such variables.
var reservedSecretPrefixes = []string{
	"SKILL_", "SALLYPORT_", "LD_", "DYLD_", "LC_", "PYTHON", "NODE_", "NPM_CONFIG_", "RUBY", "PERL", "BASH_", "MALLOC_", "LUA_", "GIT_", "DOTNET_", "CORECLR_", "COR_", "XDG_",
	"GODEBUG", "GOTRACEBACK", "UV_", "DENO_", "BUN_", "PHP",
}

// CheckSecretName returns nil for a name that a secret can have: a capital letter, then capital letters, digits and underscores,
// at most [SecretNameMaxLength] of them, and none that the run, the loader or an interpreter listens to. Otherwise an
// INVALID_ARGUMENT error that names the fault.
func CheckSecretName(name string) error {
	const op = "secret.name"
	if name == "" || len(name) > SecretNameMaxLength || name[0] < 'A' || name[0] > 'Z' ||
		strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" {
		return Errorf(op, CodeInvalidArgument,
			"the name of a secret is a capital letter, then capital letters, digits and underscores, %d at most, such as API_TOKEN", SecretNameMaxLength)
	}
	if slices.Contains(reservedSecretNames, name) || slices.ContainsFunc(reservedSecretPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return Errorf(op, CodeInvalidArgument,
			"a secret cannot be called %s: the run, the loader or an interpreter listens to that variable; choose another name", name)
	}
	return nil
}

// CheckSecretValue returns nil for what can be the value of a secret. The error never tells the value.
func CheckSecretValue(value Secret) error {
	const op = "secret.value"
	switch {
	case value == "":
		return Errorf(op, CodeInvalidArgument, "the value is empty; remove a secret that is not needed any more")
	case len(value) > MaxSecretBytes:
		return Errorf(op, CodeInvalidArgument, "the value is over %d bytes, which is the most a secret can have", MaxSecretBytes)
	case strings.IndexByte(string(value), 0) >= 0:
		return Errorf(op, CodeInvalidArgument, "the value holds a NUL byte, which no environment variable can")
	}
	return nil
}

// SecretMissing is the refusal of a run whose script declares secrets that its tenant has not set.
func SecretMissing(op string, names []string) *Error {
	e := Errorf(op, CodeSecretMissing, "the script declares secrets that are not set: %[1]s; an administrator sets one with: sallyport secret set %[2]s",
		strings.Join(names, ", "), names[0])
	e.Details = map[string]any{"secrets": names}
	return e
}
