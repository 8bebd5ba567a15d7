package sallyport

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"
)

// Digest is a SHA-256 written with its algorithm: "sha256:" and 64 lower-case hex digits. The digest of a
// revision covers every byte the sandbox will see; see internal/canonical for its form.
type Digest string

const digestPrefix = "sha256:"

// DigestOf returns the digest of data.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest(digestPrefix + hex.EncodeToString(sum[:]))
}

// ParseDigest accepts "sha256:" and 64 hex digits of either case and returns the lower-case form.
// Anything else is INVALID_ARGUMENT.
func ParseDigest(s string) (Digest, error) {
	lower := strings.ToLower(s)
	hexPart, found := strings.CutPrefix(lower, digestPrefix)
	if _, err := hex.DecodeString(hexPart); !found || len(hexPart) != 2*sha256.Size || err != nil {
		return "", &Error{Op: "digest", Code: CodeInvalidArgument, Message: "a digest is sha256: and 64 hex digits"}
	}
	return Digest(lower), nil
}

// Equal compares in constant time. An empty or malformed digest equals nothing, itself included.
func (d Digest) Equal(other Digest) bool {
	a, errA := ParseDigest(string(d))
	b, errB := ParseDigest(string(other))
	if errA != nil || errB != nil {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// Hex returns the 64 hex digits.
func (d Digest) Hex() string { return strings.TrimPrefix(string(d), digestPrefix) }
