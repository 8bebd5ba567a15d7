package access

import (
	"strings"
	"testing"
)

func TestNewSecret(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	counts := map[byte]int{}
	for range 2000 {
		secret := newSecret()
		if !wellFormed(secret) || seen[secret] {
			t.Fatalf("got %q, seen before: %v", secret, seen[secret])
		}
		seen[secret] = true
		for i := len(secretScheme); i < len(secretScheme)+secretRandom; i++ {
			counts[secret[i]]++
		}
	}
	// 60000 digits over 62 letters: 968 each; a reduction of the byte modulo 62 would give the first eight 25 % more.
	for i := range len(base62) {
		if n := counts[base62[i]]; n < 800 || n > 1150 {
			t.Errorf("digit %q came %d times, want about 968", base62[i], n)
		}
	}
}

func TestChecksum(t *testing.T) {
	t.Parallel()
	// CRC-32 (IEEE) of "123456789" is cbf43926, here in base 62 as another program computed it.
	if got, want := checksum("123456789"), "3jZRME"; got != want {
		t.Errorf("checksum: got %q, want %q", got, want)
	}
	if got := checksum(""); got != strings.Repeat("0", secretCheck) {
		t.Errorf("checksum of nothing: got %q", got)
	}
}
