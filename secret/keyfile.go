package secret

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport"
)

const (
	opKeyFile = "secret.key_file"
	// maxKeyFile bounds the file, in bytes.
	maxKeyFile = 64 << 10
	keyPrefix  = "sallyport-secret-key-v1 "
)

// KeyFile is a KeyProvider whose keys are in a file: one a line, the current one first. It is made when it is absent and first
// needed, with mode 0600. It is safe for concurrent use by one process.
type KeyFile struct {
	path string
	// fresh reports whether a new file may be made: not when secrets are stored that an absent file would have opened.
	fresh func(ctx context.Context) (bool, error)

	mu sync.Mutex // one change of the file at a time
}

type fileKey struct {
	id  string
	key []byte
}

// NewKeyFile returns the provider for the file at path. fresh is asked before a file is made; nil never makes one.
func NewKeyFile(path string, fresh func(ctx context.Context) (bool, error)) *KeyFile {
	return &KeyFile{path: path, fresh: fresh}
}

// Wrap implements KeyProvider.
func (f *KeyFile) Wrap(ctx context.Context, dataKey, binding []byte) (string, []byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys, err := f.load(ctx, true)
	if err != nil {
		return "", nil, err
	}
	wrapped, err := encrypt(keys[0].key, dataKey, binding)
	return keys[0].id, wrapped, err
}

// Unwrap implements KeyProvider.
func (f *KeyFile) Unwrap(ctx context.Context, keyID string, wrapped, binding []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys, err := f.load(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, one := range keys {
		if one.id == keyID {
			return decrypt(one.key, wrapped, binding)
		}
	}
	return nil, fault("the file of secrets.key_file does not hold the key %s that a secret was encrypted with; restore it from a backup, or set the secrets again", keyID)
}

// Rotate implements Rotator: a new key goes in front of the others.
func (f *KeyFile) Rotate(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys, err := f.load(ctx, true)
	if err != nil {
		return err
	}
	return f.write(append([]fileKey{named(newKey())}, keys...))
}

// Retire implements Rotator.
func (f *KeyFile) Retire(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys, err := f.load(ctx, false)
	if err != nil || len(keys) == 1 {
		return err
	}
	return f.write(keys[:1])
}

// load reads the file, each time anew: another process may have rotated it. With mayMake it makes one where there is none and
// there may be.
func (f *KeyFile) load(ctx context.Context, mayMake bool) ([]fileKey, error) {
	keys, err := readKeyFile(f.path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return keys, err
	}
	if mayMake && f.fresh != nil {
		fresh, err := f.fresh(ctx)
		if err != nil {
			return nil, err
		}
		if fresh {
			keys = []fileKey{named(newKey())}
			return keys, f.write(keys)
		}
	}
	return nil, fault("the file of secrets.key_file is not there, and secrets are encrypted with its key; restore it from a backup")
}

func readKeyFile(path string) ([]fileKey, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		// What a platform mounts as a file is often a link; its target is judged.
		if info, err = os.Stat(path); err != nil {
			return nil, err
		}
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyFile {
		return nil, fault("the file of secrets.key_file is no ordinary file of keys")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fault("the file of secrets.key_file is open to other users (mode %04o); take that from them with chmod 0600", info.Mode().Perm())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var keys []fileKey
	for line := range bytes.Lines(data) {
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		encoded, ours := strings.CutPrefix(text, keyPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ours || err != nil || len(key) != keyBytes {
			return nil, fault("the file of secrets.key_file is damaged: line %d is no key; restore it from a backup", len(keys)+1)
		}
		keys = append(keys, named(key))
	}
	if len(keys) == 0 {
		return nil, fault("the file of secrets.key_file holds no key; restore it from a backup")
	}
	return keys, nil
}

// named gives a key the name by which sealed secrets know it: the beginning of its digest.
func named(key []byte) fileKey {
	sum := sha256.Sum256(append([]byte("sallyport.secret.key-id.v1\n"), key...))
	return fileKey{"file:" + hex.EncodeToString(sum[:8]), key}
}

// write replaces the file whole: a crash leaves the old one or the new one, and it is on disk before a key of it is used.
func (f *KeyFile) write(keys []fileKey) error {
	var text strings.Builder
	text.WriteString("# Encrypts the secrets of every tenant. Keep a copy in a safe place: without it they are lost. The first key is the current one.\n")
	for _, one := range keys {
		text.WriteString(keyPrefix + base64.StdEncoding.EncodeToString(one.key) + "\n")
	}
	path := f.path
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return unwritable(err)
	}
	defer func() { _ = root.Close() }()
	name := filepath.Base(path)
	fresh := name + ".new"
	if err := errors.Join(writeSynced(root, fresh, text.String()), root.Rename(fresh, name), syncFolder(root)); err != nil {
		return unwritable(err)
	}
	return nil
}

func writeSynced(root *os.Root, name, text string) error {
	file, err := root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Chmod(0o600), file.Sync(), file.Close())
}

func syncFolder(root *os.Root) error {
	folder, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func unwritable(err error) error {
	return &sallyport.Error{
		Op: opKeyFile, Code: sallyport.CodeStoreUnavailable, Err: err,
		Message: "the file of secrets.key_file cannot be written; check the owner, mode and mount of its folder",
	}
}

func fault(format string, args ...any) error {
	return &sallyport.Error{Op: opKeyFile, Code: sallyport.CodeStoreUnavailable, Message: fmt.Sprintf(format, args...)}
}
