package server

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/sallyport-dev/sallyport"
)

// backupFormat is the first word of every backup. Its version changes when an older program could misread one.
const backupFormat = "sallyport.backup.v1"

// The names inside a backup. The manifest comes first, and says what follows.
const (
	backupManifest = "manifest.json"
	// maxManifest bounds the manifest, in bytes.
	maxManifest = 1 << 20
)

// BackupManifest says what a backup holds, signed by the key that signs the installation's audit checkpoints.
type BackupManifest struct {
	Format    string       `json:"format"`
	CreatedAt time.Time    `json:"created_at"`
	Version   string       `json:"version"` // of the program that made it
	Keys      bool         `json:"keys"`    // whether the installation's keys are in it
	Files     []BackupFile `json:"files"`
	PublicKey string       `json:"public_key"`          // base64
	Signature string       `json:"signature,omitempty"` // base64, Ed25519 over the manifest as JSON without it
}

// BackupFile is one file of a data folder.
type BackupFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// form is what is signed.
func (m BackupManifest) form() ([]byte, error) {
	m.Signature = ""
	return json.Marshal(m)
}

// holds reports whether the manifest is signed by the key that it names.
func (m BackupManifest) holds() bool {
	key, err := base64.StdEncoding.DecodeString(m.PublicKey)
	signature, bad := base64.StdEncoding.DecodeString(m.Signature)
	form, unreadable := m.form()
	return errors.Join(err, bad, unreadable) == nil && len(key) == ed25519.PublicKeySize && ed25519.Verify(key, form, signature)
}

// Backup takes the whole installation as it is at one instant, beside runs and writes, and returns what writes it out; the caller
// calls that once. With keys the archive also holds the key that signs the trail and the key that opens secrets. It is on the trail
// before it begins. STORE_UNAVAILABLE while another backup is under way.
func (s *Server) Backup(ctx context.Context, keys bool) (write func(ctx context.Context, w io.Writer) error, err error) {
	const op = "server.backup"
	if !s.backing.TryLock() {
		return nil, sallyport.Errorf(op, sallyport.CodeStoreUnavailable, "another backup is under way; try again when it is done")
	}
	begun := &backup{server: s, folder: path.Join(spoolFolder, "backup-"+uuid.NewString())}
	defer func() {
		if err != nil {
			err = errors.Join(err, begun.end())
		}
	}()
	detail, err := json.Marshal(map[string]any{"keys": keys})
	if err == nil {
		err = s.audit.Append(ctx, sallyport.Entry{
			TenantID: sallyport.DefaultTenant, Actor: Operator().ID, Action: sallyport.ActionBackupCreate, Entity: "installation", Detail: detail,
		})
	}
	if err == nil {
		err = begun.take(ctx, keys)
	}
	if own, ok := errors.AsType[*sallyport.Error](err); ok {
		return nil, own
	}
	if err != nil {
		return nil, &sallyport.Error{Op: op, Code: sallyport.CodeStoreUnavailable, Message: "the backup cannot be made: is there room for a copy of the database beside it?", Err: err}
	}
	return begun.write, nil
}

// backup is one on its way: a folder in the spool with a copy of everything.
type backup struct {
	server   *Server
	folder   string
	manifest BackupManifest
}

// take copies everything into the spool. The checkpoints come first: they must not know more of the trail than the database.
func (b *backup) take(ctx context.Context, keys bool) error {
	root := b.server.owner.root
	if err := root.Mkdir(b.folder, 0o700); err != nil {
		return err
	}
	names := []string{checkpoints, DatabaseFile}
	if keys {
		names = append(names, keyFile, secretsFile)
	}
	b.manifest = BackupManifest{
		Format: backupFormat, CreatedAt: b.server.cfg.Now().UTC().Truncate(time.Microsecond), Version: b.server.cfg.Version, Keys: keys,
		Files: []BackupFile{}, PublicKey: base64.StdEncoding.EncodeToString(publicHalf(b.server.key)),
	}
	for _, name := range names {
		var err error
		if name == DatabaseFile {
			err = b.server.store.Snapshot(ctx, filepath.Join(b.server.cfg.DataDir, filepath.FromSlash(b.folder), name))
		} else {
			err = b.copy(root, name)
		}
		if name == secretsFile && errors.Is(err, os.ErrNotExist) {
			continue // there are no secrets, or their key is elsewhere
		}
		if err != nil {
			return err
		}
		file, err := describe(root, path.Join(b.folder, name))
		if err != nil {
			return err
		}
		b.manifest.Files = append(b.manifest.Files, file)
	}
	form, err := b.manifest.form()
	if err == nil {
		b.manifest.Signature = base64.StdEncoding.EncodeToString(ed25519.Sign(b.server.key, form))
	}
	return err
}

func publicHalf(key ed25519.PrivateKey) ed25519.PublicKey {
	public, _ := key.Public().(ed25519.PublicKey)
	return public
}

func (b *backup) copy(root *os.Root, name string) error {
	from, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := root.OpenFile(path.Join(b.folder, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

func describe(root *os.Root, name string) (BackupFile, error) {
	file, err := root.Open(name)
	if err != nil {
		return BackupFile{}, err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	return BackupFile{path.Base(name), size, hex.EncodeToString(sum.Sum(nil))}, err
}

// write sends the archive: the manifest, then the files in its order.
func (b *backup) write(ctx context.Context, w io.Writer) (err error) {
	defer func() { err = errors.Join(err, b.end()) }()
	manifest, err := json.Marshal(b.manifest)
	if err != nil {
		return err
	}
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(packed)
	header := func(name string, size int64) error {
		return archive.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: b.manifest.CreatedAt.Truncate(time.Second), Format: tar.FormatPAX,
		})
	}
	if err := header(backupManifest, int64(len(manifest))); err != nil {
		return err
	}
	if _, err := archive.Write(manifest); err != nil {
		return err
	}
	for _, described := range b.manifest.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := header(described.Name, described.Size); err != nil {
			return err
		}
		file, err := b.server.owner.root.Open(path.Join(b.folder, described.Name))
		if err != nil {
			return err
		}
		_, err = io.Copy(archive, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), packed.Close())
}

func (b *backup) end() error {
	b.server.backing.Unlock()
	return b.server.owner.root.RemoveAll(b.folder)
}
