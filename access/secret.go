package access

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"strings"
)

// The shape of a key: "spk_", then secretRandom base62 digits (178 random bits), then the CRC-32 of all of that in
// secretCheck base62 digits. One word, so that a double click selects it; the checksum lets a scanner or this server
// tell a typing error from a key without asking the database.
const (
	secretScheme = "spk_"
	secretRandom = 30
	secretCheck  = 6
	secretLength = len(secretScheme) + secretRandom + secretCheck
	// prefixLength is how much of a key is kept to recognise it by; what stays unknown is 142 bits.
	prefixLength = len(secretScheme) + 6
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// newSecret returns a fresh key.
func newSecret() string {
	// 248 is the largest multiple of 62 in a byte: larger bytes are thrown away, so that every digit is equally likely.
	const fair = 248
	body := make([]byte, 0, secretLength)
	body = append(body, secretScheme...)
	var block [2 * secretRandom]byte
	for len(body) < len(secretScheme)+secretRandom {
		_, _ = rand.Read(block[:]) // never fails: crypto/rand ends the process instead
		for _, b := range block {
			if b < fair && len(body) < len(secretScheme)+secretRandom {
				body = append(body, base62[b%62])
			}
		}
	}
	return string(body) + checksum(string(body))
}

// checksum is the CRC-32 (IEEE) of body in six base62 digits, most significant first.
func checksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var digits [secretCheck]byte
	for i := secretCheck - 1; i >= 0; i-- {
		digits[i] = base62[sum%62]
		sum /= 62
	}
	return string(digits[:])
}

// wellFormed reports whether secret has the shape and the checksum of a key. It says nothing about whether the key exists.
func wellFormed(secret string) bool {
	if len(secret) != secretLength || !strings.HasPrefix(secret, secretScheme) {
		return false
	}
	for i := len(secretScheme); i < len(secret); i++ {
		if strings.IndexByte(base62, secret[i]) < 0 {
			return false
		}
	}
	body, check := secret[:secretLength-secretCheck], secret[secretLength-secretCheck:]
	return checksum(body) == check
}

// hashSecret is what is stored of a key. One SHA-256 is enough: a key is random, so there is nothing to guess faster.
func hashSecret(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
