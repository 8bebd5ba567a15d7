package server

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/internal/store"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
	"github.com/sallyport-dev/sallyport/run"
)

// BackupReport is what a backup was found to be.
type BackupReport struct {
	Manifest BackupManifest `json:"manifest"`
	// Schema is the version of its database, Contents how many files of skills and runs were held against their sha256.
	Schema   int64         `json:"schema"`
	Contents int64         `json:"contents"`
	Trails   []BackupTrail `json:"trails"`
	// Open counts executions that were queued or running at that instant; a restore closes them as lost.
	Open int64 `json:"open_executions"`
	// Data is the folder that was restored; empty for a backup that was only looked at.
	Data string `json:"data,omitempty"`
}

// BackupTrail is the audit trail of one tenant.
type BackupTrail struct {
	TenantID sallyport.TenantID `json:"tenant_id"`

	audit.Verdict
}

const opRestore = "server.restore"

// CheckBackup reads a backup to its end: whether it is whole and what its manifest says. The database inside is not opened.
func CheckBackup(r io.Reader) (BackupManifest, error) {
	return unpack(r, func(BackupFile, io.Reader) error { return nil })
}

// VerifyBackup unpacks a backup below scratch, which must exist, reads everything in it, checks the audit trail of every tenant, and
// removes what it unpacked. A backup that was changed or cut is INVALID_ARGUMENT; so is one by another key than publicKey, when that
// is not empty.
func VerifyBackup(ctx context.Context, r io.Reader, scratch, publicKey string) (BackupReport, error) {
	folder, err := os.MkdirTemp(scratch, "sallyport-verify-")
	if err != nil {
		return BackupReport{}, unwritable(err)
	}
	report, err := inspectBackup(ctx, r, folder, publicKey, false)
	return report, errors.Join(err, os.RemoveAll(folder))
}

// Restore makes a data folder of a backup, verified as by VerifyBackup. The folder must be absent or empty; it appears whole, or not at
// all. Executions that were open at that instant are closed as lost, and none is run again.
func Restore(ctx context.Context, r io.Reader, dir, publicKey string) (_ BackupReport, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return BackupReport{}, unwritable(err)
	}
	if err := vacant(dir); err != nil {
		return BackupReport{}, err
	}
	parent := filepath.Dir(dir)
	folder, err := os.MkdirTemp(parent, ".sallyport-restore-") // 0700
	if err != nil {
		return BackupReport{}, unwritable(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	report, err := inspectBackup(ctx, r, folder, publicKey, true)
	if err != nil {
		return BackupReport{}, err
	}
	if err := syncFolder(folder); err != nil {
		return BackupReport{}, unwritable(err)
	}
	// What became of dir meanwhile the system decides: it removes no folder that has something in it, and renames over none.
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return BackupReport{}, unwritable(err)
	}
	if err := errors.Join(os.Rename(folder, dir), syncFolder(parent)); err != nil {
		return BackupReport{}, unwritable(err)
	}
	report.Data = dir
	return report, nil
}

func unwritable(err error) error {
	return &sallyport.Error{Op: opRestore, Code: sallyport.CodeStoreUnavailable, Message: "the folder cannot be written; check its owner, mode and room", Err: err}
}

// vacant refuses a folder that has anything in it: a live installation, or what is left of one.
func vacant(dir string) error {
	folder, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unwritable(err)
	}
	defer func() { _ = folder.Close() }()
	if _, err := folder.Readdirnames(1); errors.Is(err, io.EOF) {
		return nil
	}
	return sallyport.Errorf(opRestore, sallyport.CodeInvalidArgument,
		"%s is not an empty folder, and a restore never writes over anything; name a folder that does not exist yet", dir)
}

func syncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// inspectBackup unpacks a backup into a folder and judges all of it. With settle it is left ready for a server: its schema brought
// forward and its open executions closed.
func inspectBackup(ctx context.Context, r io.Reader, folder, publicKey string, settle bool) (BackupReport, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return BackupReport{}, unwritable(err)
	}
	defer func() { _ = root.Close() }()
	report := BackupReport{Trails: []BackupTrail{}}
	report.Manifest, err = unpack(r, func(file BackupFile, content io.Reader) error {
		to, err := root.OpenFile(file.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return unwritable(err)
		}
		_, err = io.Copy(to, content)
		if wrong, ours := errors.AsType[*sallyport.Error](err); ours {
			return errors.Join(wrong, to.Close())
		}
		if err := errors.Join(err, to.Sync(), to.Close()); err != nil {
			return unwritable(err)
		}
		return nil
	})
	if err != nil {
		return BackupReport{}, err
	}
	if publicKey != "" && publicKey != report.Manifest.PublicKey {
		return BackupReport{}, tampered("it is signed by another key than the one that was named: %s", report.Manifest.PublicKey)
	}
	path := filepath.Join(folder, DatabaseFile)
	sound, err := store.CheckFile(ctx, path)
	if err != nil {
		return BackupReport{}, err
	}
	report.Schema, report.Contents, report.Open = sound.Schema, sound.Contents, sound.Open
	db, err := store.Open(ctx, store.Config{Path: path})
	if err != nil {
		return BackupReport{}, err
	}
	report.Trails, err = verifyTrails(ctx, db, root, report.Manifest.PublicKey)
	if err == nil && settle {
		_, err = run.New(run.Config{Ledger: db}).Recover(ctx)
	}
	return report, errors.Join(err, db.Shutdown())
}

// verifyTrails holds the trail of every tenant against the checkpoints in the backup.
func verifyTrails(ctx context.Context, db *store.Store, root *os.Root, publicKey string) ([]BackupTrail, error) {
	log, err := root.Open(checkpoints)
	if err != nil {
		return nil, unwritable(err)
	}
	outside, err := audit.ReadCheckpoints(log)
	if err := errors.Join(err, log.Close()); err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(publicKey)
	if err != nil {
		return nil, tampered("its manifest names no key")
	}
	outside = slices.DeleteFunc(outside, func(c audit.Checkpoint) bool { return c.PublicKey != publicKey })
	tenants, err := db.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	trail, trails := audit.New(audit.Config{Store: db, PublicKey: key}), []BackupTrail{}
	for _, tenant := range tenants {
		reader := sallyport.Principal{ID: "backup", TenantID: tenant, Scopes: []sallyport.Scope{sallyport.ScopeAuditRead}}
		verdict, err := trail.Verify(ctx, reader, outside)
		if err != nil {
			return nil, err
		}
		trails = append(trails, BackupTrail{tenant, verdict})
		if verdict.Result != audit.ResultValid {
			return trails, tampered("the audit trail of tenant %s is %s: %s", tenant, verdict.Result, verdict.Message)
		}
	}
	return trails, nil
}

func tampered(format string, args ...any) error {
	return sallyport.Errorf(opRestore, sallyport.CodeInvalidArgument, "the backup cannot be used: "+format, args...)
}

// unpack reads a backup strictly: the signed manifest, then every file that it names, in its order and as it says, and nothing else.
func unpack(r io.Reader, take func(file BackupFile, content io.Reader) error) (BackupManifest, error) {
	packed, err := gzip.NewReader(r)
	if err != nil {
		return BackupManifest{}, tampered("it is no backup of Sallyport")
	}
	archive := tar.NewReader(packed)
	manifest, err := readManifest(archive)
	if err != nil {
		return manifest, err
	}
	for _, file := range manifest.Files {
		header, err := archive.Next()
		if err != nil || header.Name != file.Name || header.Size != file.Size || header.Typeflag != tar.TypeReg {
			return manifest, tampered("%s is missing or not what the manifest says", file.Name)
		}
		sum := &summing{reader: archive, hash: sha256.New()}
		if err := take(file, sum); err != nil {
			return manifest, err
		}
		if _, err := io.Copy(io.Discard, sum); err != nil {
			return manifest, err
		}
		if hex.EncodeToString(sum.hash.Sum(nil)) != file.SHA256 {
			return manifest, tampered("%s was changed: it does not match the sha256 in the manifest", file.Name)
		}
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		return manifest, tampered("it holds more than its manifest says")
	}
	// The end of the archive and the checksum behind it.
	if rest, err := io.Copy(io.Discard, io.LimitReader(packed, 1<<20)); err != nil || rest == 1<<20 {
		return manifest, tampered("it is cut off or damaged at its end")
	}
	return manifest, nil
}

// summing turns a broken archive into a sentence.
type summing struct {
	reader io.Reader
	hash   interface {
		io.Writer
		Sum(b []byte) []byte
	}
}

func (s *summing) Read(p []byte) (int, error) {
	n, err := s.reader.Read(p)
	_, _ = s.hash.Write(p[:n]) // a hash cannot fail
	if err != nil && !errors.Is(err, io.EOF) {
		err = tampered("it is cut off or damaged")
	}
	return n, err
}

// readManifest reads and judges the manifest.
func readManifest(archive *tar.Reader) (BackupManifest, error) {
	var manifest BackupManifest
	header, err := archive.Next()
	if err != nil || header.Name != backupManifest || header.Size > maxManifest {
		return manifest, tampered("it is no backup of Sallyport")
	}
	text, err := io.ReadAll(archive)
	if err != nil {
		return manifest, tampered("it is cut off or damaged")
	}
	if err := strictjson.Decode(text, &manifest); err != nil {
		return manifest, tampered("its manifest cannot be read")
	}
	switch {
	case manifest.Format != backupFormat && strings.HasPrefix(manifest.Format, "sallyport.backup."):
		return manifest, tampered("it was made by a newer version of sallyport (%s); use that version or a newer one", manifest.Format)
	case manifest.Format != backupFormat:
		return manifest, tampered("it is no backup of Sallyport")
	case !manifest.holds():
		return manifest, tampered("its manifest was changed: the signature does not hold")
	}
	names := []string{}
	for _, file := range manifest.Files {
		if !slices.Contains([]string{checkpoints, DatabaseFile, keyFile, secretsFile}, file.Name) || slices.Contains(names, file.Name) {
			return manifest, tampered("it holds a file that no backup has: %q", file.Name)
		}
		names = append(names, file.Name)
	}
	for _, needed := range []string{checkpoints, DatabaseFile} {
		if !slices.Contains(names, needed) {
			return manifest, tampered("%s is missing", needed)
		}
	}
	return manifest, nil
}
