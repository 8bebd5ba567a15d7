package sallyport

import (
	"strings"
	"time"
)

// IdempotencyKeyLife is how long an idempotency key stands for what was done with it.
const IdempotencyKeyLife = 24 * time.Hour

// maxIdempotencyKey bounds a key, in bytes.
const maxIdempotencyKey = 255

// CheckIdempotencyKey returns INVALID_ARGUMENT unless key is 1 to 255 visible characters of ASCII.
func CheckIdempotencyKey(op, key string) error {
	if key != "" && len(key) <= maxIdempotencyKey && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil
	}
	return Errorf(op, CodeInvalidArgument, "an idempotency key is 1 to %d visible characters of ASCII", maxIdempotencyKey)
}
