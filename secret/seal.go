package secret

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"

	"github.com/sallyport-dev/sallyport"
)

// keyBytes is the length of every key: AES-256.
const keyBytes = 32

// A KeyProvider encrypts data keys: a key management service, or the key file of this package. binding is authenticated with
// the data key; a wrapped key that is moved to another secret or tenant does not unwrap. It must be safe for concurrent use.
type KeyProvider interface {
	// Wrap encrypts a data key under the provider's current key and names that key.
	Wrap(ctx context.Context, dataKey, binding []byte) (keyID string, wrapped []byte, err error)
	// Unwrap decrypts what Wrap made, with the key of that name.
	Unwrap(ctx context.Context, keyID string, wrapped, binding []byte) (dataKey []byte, err error)
}

// A Rotator is a KeyProvider whose key can be replaced from here. A service that rotates its keys by itself need not be one.
type Rotator interface {
	// Rotate makes a new current key and keeps the old ones.
	Rotate(ctx context.Context) error
	// Retire forgets every key but the current one; it is called when nothing is encrypted under another.
	Retire(ctx context.Context) error
}

// binding is what a box and its data key belong to: a tenant and a name, each with its length before it, so that no two pairs
// have one form.
func binding(tenant sallyport.TenantID, name string) []byte {
	b := []byte("sallyport.secret.v1\n")
	for _, part := range []string{string(tenant), name} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	return b
}

// seal encrypts value into s under a fresh data key. A data key encrypts one box, so a nonce is never used twice.
func seal(ctx context.Context, keys KeyProvider, tenant sallyport.TenantID, s *Sealed, value sallyport.Secret) error {
	dataKey := newKey()
	defer clear(dataKey)
	bound := binding(tenant, s.Name)
	var err error
	if s.Box, err = encrypt(dataKey, []byte(value), bound); err != nil {
		return &sallyport.Error{Op: opSet, Code: sallyport.CodeInternal, Err: err}
	}
	if s.KeyID, s.WrappedKey, err = keys.Wrap(ctx, dataKey, bound); err != nil {
		return keyFault(opSet, err)
	}
	return nil
}

func open(ctx context.Context, keys KeyProvider, tenant sallyport.TenantID, s Sealed) (sallyport.Secret, error) {
	bound := binding(tenant, s.Name)
	dataKey, err := keys.Unwrap(ctx, s.KeyID, s.WrappedKey, bound)
	if err != nil {
		return "", keyFault(opOpen, err)
	}
	defer clear(dataKey)
	value, err := decrypt(dataKey, s.Box, bound)
	if err != nil {
		return "", &sallyport.Error{
			Op: opOpen, Code: sallyport.CodeStoreUnavailable, Err: err,
			Message: "the secret " + s.Name + " is damaged: it does not decrypt; set it again",
		}
	}
	return sallyport.Secret(value), nil
}

// keyFault is the error of a key that cannot be used.
func keyFault(op string, err error) error {
	if own, ok := errors.AsType[*sallyport.Error](err); ok {
		return own
	}
	return &sallyport.Error{
		Op: op, Code: sallyport.CodeStoreUnavailable, Err: err,
		Message: "the key that encrypts secrets cannot be used; an operator must look at secrets.key_file",
	}
}

func newKey() []byte {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the process instead
	return key
}

// encrypt is AES-256-GCM with a random nonce in front.
func encrypt(key, plain, bound []byte) ([]byte, error) {
	aead, err := aeadOf(key)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, plain, bound), nil //nolint:gosec // it takes no nonce: it makes one
}

func decrypt(key, box, bound []byte) ([]byte, error) {
	aead, err := aeadOf(key)
	if err != nil {
		return nil, err
	}
	return aead.Open(nil, nil, box, bound)
}

func aeadOf(key []byte) (cipher.AEAD, error) {
	if len(key) != keyBytes {
		return nil, errors.New("a key of a wrong length")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
