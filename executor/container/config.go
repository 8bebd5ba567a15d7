package container

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
)

// Kind is the name of this executor.
const Kind = "container"

// The defaults of [Config].
const (
	// DefaultFirstUID and DefaultUIDCount describe the range of uids for runs. It lies below 65536, so that it exists on an engine
	// without root too, and beside the range of the executor bubblewrap.
	DefaultFirstUID = 61200
	DefaultUIDCount = 2048
)

// Config describes the executor. The zero value is refused: it names no engine.
type Config struct {
	// Socket is the path of the engine's UNIX socket; "unix://" may stand before it.
	Socket string
	// Images names the image for a runtime (python, bash, node, or a runtime's own name) whose interpreter brings none:
	// name:tag, name@sha256:..., or an image id, sha256:.... It must be on the engine: nothing is ever pulled.
	Images map[string]string
	// RequireDigest refuses every image that is not named by its digest or id.
	RequireDigest bool
	// Owner names this server among those that use the same engine, the same after a restart. Containers are labelled with it,
	// and what a crash left under it is removed.
	Owner string
	// Profile names the list of system calls that scripts are denied, as for the executor bubblewrap. Empty means the default.
	Profile string
	// FirstUID and UIDCount are the range of uids for runs. One uid serves one run at a time. Zero means the defaults.
	FirstUID, UIDCount int
	// Logger tells what an operator should know; nil discards.
	Logger *slog.Logger

	// callTimeout bounds one request to the engine; leftoverAge is how long a container that never started may be there before
	// nobody can be about to start it. Tests shorten both.
	callTimeout, leftoverAge time.Duration
}

func (c Config) withDefaults() Config {
	c.Socket = strings.TrimPrefix(c.Socket, "unix://")
	if c.FirstUID == 0 && c.UIDCount == 0 {
		c.FirstUID, c.UIDCount = DefaultFirstUID, DefaultUIDCount
	}
	if c.Profile == "" {
		c.Profile = seccomp.Default
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.callTimeout == 0 {
		c.callTimeout = 10 * time.Second
	}
	if c.leftoverAge == 0 {
		c.leftoverAge = time.Minute
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Socket == "" {
		errs = append(errs, errors.New("container: no engine is named; set container.socket to its socket, such as /run/podman/podman.sock or /var/run/docker.sock"))
	} else if !filepath.IsAbs(c.Socket) && !path.IsAbs(c.Socket) {
		errs = append(errs, fmt.Errorf("container: the socket %q is not an absolute path", c.Socket))
	}
	if !labelWord(c.Owner) {
		errs = append(errs, errors.New("container: the owner must be 1 to 64 letters, digits, dots or dashes"))
	}
	for runtime, ref := range c.Images {
		if fault := imageFault(ref, c.RequireDigest); fault != "" {
			errs = append(errs, fmt.Errorf("container: the image of %s, %q, %s", runtime, ref, fault))
		}
	}
	if c.Profile != seccomp.Default && c.Profile != seccomp.Strict {
		errs = append(errs, fmt.Errorf("container: there is no profile %q; there is %s and %s", c.Profile, seccomp.Default, seccomp.Strict))
	}
	if c.FirstUID < 1000 || c.UIDCount < 1 || c.FirstUID > 1<<31-2-c.UIDCount || (c.FirstUID <= 65534 && c.FirstUID+c.UIDCount > 65534) {
		errs = append(errs, fmt.Errorf("container: uids %d..%d are not a range of ordinary uids", c.FirstUID, c.FirstUID+c.UIDCount-1))
	}
	if err := errors.Join(errs...); err != nil {
		return &sallyport.Error{Op: "container.new", Code: sallyport.CodeInvalidArgument, Message: err.Error(), Err: err}
	}
	return nil
}

func labelWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// imageFault says what is wrong with a reference; empty when nothing is. It becomes part of a request's path.
func imageFault(ref string, requireDigest bool) string {
	digest := ref
	if name, after, found := strings.Cut(ref, "@"); found {
		digest = after
		if name == "" {
			return "has no name before its digest"
		}
	}
	hex, isDigest := strings.CutPrefix(digest, "sha256:")
	isDigest = isDigest && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
	switch {
	case ref == "" || len(ref) > 512:
		return "is no reference of an image"
	case strings.Contains(ref, "@") && !isDigest:
		return "has no digest of the form sha256: and 64 hex digits"
	case requireDigest && !isDigest:
		return "is not named by its digest, which this installation demands: name@sha256:..., or an image id"
	}
	for i := range len(ref) {
		c := ref[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("._-/:@", rune(c)) {
			return "is no reference of an image"
		}
	}
	if strings.Contains(ref, "..") || strings.HasPrefix(ref, "/") || strings.Contains(ref, "//") {
		return "is no reference of an image"
	}
	return ""
}
