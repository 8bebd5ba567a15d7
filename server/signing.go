package server

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// signingKey reads the key that signs audit checkpoints from the data folder, or makes it once. A file that is there but is no
// key is an error: a new key would quietly void the signatures of the old one.
func signingKey(root *os.Root) (ed25519.PrivateKey, error) {
	const op = "server.signing"
	text, err := root.ReadFile(keyFile)
	switch {
	case err == nil:
		seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
		if err != nil || len(seed) != ed25519.SeedSize {
			return nil, sallyport.Errorf(op, sallyport.CodeStoreUnavailable, "%s in the data folder is damaged; restore it from a backup", keyFile)
		}
		return ed25519.NewKeyFromSeed(seed), nil
	case !errors.Is(err, os.ErrNotExist):
		return nil, &sallyport.Error{Op: op, Code: sallyport.CodeStoreUnavailable, Message: keyFile + " in the data folder cannot be read", Err: err}
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, &sallyport.Error{Op: op, Code: sallyport.CodeInternal, Err: err}
	}
	// Written beside and renamed, so that a crash leaves no half key behind.
	const fresh = keyFile + ".new"
	encoded := []byte(base64.StdEncoding.EncodeToString(key.Seed()) + "\n")
	if err := errors.Join(root.WriteFile(fresh, encoded, 0o600), root.Rename(fresh, keyFile)); err != nil {
		return nil, &sallyport.Error{Op: op, Code: sallyport.CodeStoreUnavailable, Message: "the data folder cannot be written", Err: err}
	}
	return key, nil
}
