package storetest

import (
	"fmt"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/secret"
)

func secretTests() []test {
	return []test{
		{"round trip", secretRoundTrip},
		{"set again", secretSetAgain},
		{"no more than there may be", secretCount},
		{"rewrap", secretRewrap},
		{"what does not fit is refused", secretRefuses},
	}
}

func sealed(name string, at int) secret.Sealed {
	return secret.Sealed{
		SecretInfo: sallyport.SecretInfo{Name: name, CreatedAt: day(at), UpdatedAt: day(at), UpdatedBy: owner},
		Box:        []byte("box\x00of " + name), KeyID: "key-1", WrappedKey: []byte("wrapped\xff" + name),
	}
}

func secretRoundTrip(t *trial, b Backend) {
	for _, name := range []string{"B", "A", "A_1"} {
		must(t, b.PutSecret(t.Context(), tenant, sealed(name, 1), 10))
	}
	got, err := b.Secrets(t.Context(), tenant)
	must(t, err)
	same(t, "by name", got, []secret.Sealed{sealed("A", 1), sealed("A_1", 1), sealed("B", 1)})
	one, err := b.Secret(t.Context(), tenant, "A")
	must(t, err)
	same(t, "one", one, sealed("A", 1))
	must(t, b.RemoveSecret(t.Context(), tenant, "A"))
	wantCode(t, b.RemoveSecret(t.Context(), tenant, "A"), sallyport.CodeSecretNotFound)
	for _, name := range []string{"A", "b", "", "A_"} {
		_, err = b.Secret(t.Context(), tenant, name)
		wantCode(t, err, sallyport.CodeSecretNotFound)
	}
	must(t, b.PutSecret(t.Context(), other, sealed("A", 1), 10))
	tenants, err := b.SecretTenants(t.Context())
	must(t, err)
	same(t, "tenants", tenants, []sallyport.TenantID{tenant, other})
}

func secretSetAgain(t *trial, b Backend) {
	must(t, b.PutSecret(t.Context(), tenant, sealed("A", 1), 10))
	again := sealed("A", 5)
	again.Box, again.WrappedKey, again.KeyID, again.UpdatedBy = []byte("new"), []byte("newer"), "key-2", "bob"
	must(t, b.PutSecret(t.Context(), tenant, again, 10))
	got, err := b.Secret(t.Context(), tenant, "A")
	must(t, err)
	again.CreatedAt = day(1) // when it was set first
	same(t, "the new value", got, again)
}

func secretCount(t *trial, b Backend) {
	for n := range 3 {
		must(t, b.PutSecret(t.Context(), tenant, sealed(fmt.Sprint("S", n), n), 3))
	}
	wantCode(t, b.PutSecret(t.Context(), tenant, sealed("S3", 1), 3), sallyport.CodeInvalidArgument)
	must(t, b.PutSecret(t.Context(), tenant, sealed("S2", 2), 3))
	must(t, b.PutSecret(t.Context(), other, sealed("S3", 1), 3))
	got, err := b.Secrets(t.Context(), tenant)
	must(t, err)
	same(t, "count", len(got), 3)
}

func secretRewrap(t *trial, b Backend) {
	must(t, b.PutSecret(t.Context(), tenant, sealed("A", 1), 10))
	must(t, b.PutSecret(t.Context(), other, sealed("A", 1), 10))
	old := sealed("A", 1).WrappedKey
	for n, want := range []bool{true, false} {
		replaced, err := b.RewrapSecret(t.Context(), tenant, "A", old, "key-2", []byte("other"))
		must(t, err)
		same(t, fmt.Sprint("replaced ", n), replaced, want)
	}
	replaced, err := b.RewrapSecret(t.Context(), tenant, "none", old, "key-2", []byte("other"))
	must(t, err)
	same(t, "none", replaced, false)
	want := sealed("A", 1)
	want.KeyID, want.WrappedKey = "key-2", []byte("other")
	got, err := b.Secret(t.Context(), tenant, "A")
	must(t, err)
	same(t, "rewrapped", got, want)
	got, err = b.Secret(t.Context(), other, "A")
	must(t, err)
	same(t, "another tenant's", got, sealed("A", 1))
}

func secretRefuses(t *trial, b Backend) {
	open := sealed("A", 1)
	open.Box = nil
	unwrapped := sealed("A", 1)
	unwrapped.WrappedKey = nil
	keyless := sealed("A", 1)
	keyless.KeyID = ""
	for name, s := range map[string]secret.Sealed{"no box": open, "no wrapped key": unwrapped, "no key": keyless, "no name": sealed("", 1)} {
		if err := b.PutSecret(t.Context(), tenant, s, 10); sallyport.CodeOf(err) != sallyport.CodeInternal {
			t.Errorf("%s: got %v, want INTERNAL", name, err)
		}
	}
	if err := b.PutSecret(t.Context(), "", sealed("A", 1), 10); sallyport.CodeOf(err) != sallyport.CodeInternal {
		t.Errorf("no tenant: got %v, want INTERNAL", err)
	}
}
