package auth_test

import (
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// What a token costs when the keys of its issuer are at hand.
func BenchmarkToken(b *testing.B) {
	p := newProvider(b)
	tokens := p.tokens(b, nil)
	for name, how := range map[string]token{
		"RS256": {}, "ES256": {kid: "ec", alg: jose.ES256}, "EdDSA": {kid: "ed", alg: jose.EdDSA},
	} {
		signed := p.sign(b, how)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := tokens.Authenticate(b.Context(), signed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
