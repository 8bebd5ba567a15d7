package reply

import (
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// DetailChallenge is the key under which an UNAUTHENTICATED error's details may carry the error of RFC 6750 that its
// challenge names (invalid_token, invalid_request).
const DetailChallenge = "challenge"

// realm begins every challenge.
const realm = `Bearer realm="sallyport"`

// Challenge is the WWW-Authenticate header that goes with err (RFC 6750), empty when none does: every UNAUTHENTICATED
// has one, and so has an ACCESS_DENIED that names the scope it lacked.
func Challenge(err error) string { return ChallengeAt(err, sallyport.Principal{}, "") }

// ChallengeAt is Challenge for a server whose metadata (RFC 9728) is at the URL metadata, when that is not empty. It then names
// what to ask an authorization server for: with an insufficient scope also the scopes that p has already, because clients ask
// for exactly what is listed and would lose the others.
func ChallengeAt(err error, p sallyport.Principal, metadata string) string {
	public := sallyport.Public(err)
	if public == nil {
		return ""
	}
	switch sallyport.Lookup(public.Code).Class {
	case sallyport.ClassUnauthenticated:
		challenge := realm
		if reason, ok := public.Details[DetailChallenge].(string); ok && plainToken(reason) {
			challenge += `, error="` + reason + `"`
		}
		if metadata != "" {
			challenge += `, scope="` + UsefulScopes + `"`
		}
		return challenge + Metadata(metadata)
	case sallyport.ClassDenied:
		if scope, ok := public.Details["scope"].(string); ok && sallyport.Scope(scope).Valid() {
			if metadata == "" {
				p = sallyport.Principal{}
			}
			return InsufficientScope(p, sallyport.Scope(scope)) + Metadata(metadata)
		}
	case sallyport.ClassInvalid, sallyport.ClassNotFound, sallyport.ClassConflict, sallyport.ClassTooLarge,
		sallyport.ClassExhausted, sallyport.ClassUnavailable, sallyport.ClassDeadline, sallyport.ClassOutcome,
		sallyport.ClassCanceled, sallyport.ClassInternal:
	}
	return ""
}

// UsefulScopes are what reading, saving and running need, for a caller that asks for a token.
const UsefulScopes = string(sallyport.ScopeMemoryRead) + " " + string(sallyport.ScopeMemoryWrite)

// InsufficientScope is the challenge that names needed beside the scopes that p has, and useful ones when that is nothing.
func InsufficientScope(p sallyport.Principal, needed sallyport.Scope) string {
	scopes := []string{}
	for _, s := range sallyport.Scopes() {
		if s == needed || slices.Contains(p.Scopes, s) {
			scopes = append(scopes, string(s))
		}
	}
	if len(scopes) == 0 {
		scopes = append(scopes, UsefulScopes)
	}
	return realm + `, error="insufficient_scope", scope="` + strings.Join(scopes, " ") + `"`
}

// Metadata is the part of a challenge that says where the metadata is; empty for an empty URL.
func Metadata(url string) string {
	if url == "" {
		return ""
	}
	return `, resource_metadata="` + url + `"`
}

// plainToken keeps whatever is not a lower-case word out of a header.
func plainToken(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}
