package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/server"
)

// backupCommands write and check backups.
type backupCommands struct {
	Create backupCreateCommand `cmd:"" default:"withargs" help:"Write a backup of the data folder; a running server goes on meanwhile."`
	Verify backupVerifyCommand `cmd:"" help:"Check a backup, without any server."`
}

type backupCreateCommand struct {
	File     string `arg:"" help:"The file to write; it must not exist." name:"file"`
	WithKeys bool   `help:"Put in the key that signs the audit trail and the key that opens secrets. Keep such a backup as you keep keys."`
}

// Help says what is in it.
func (*backupCreateCommand) Help() string {
	return "A backup holds the database as it is at one instant and the checkpoints kept outside it. The file appears whole, 0600, and checked. " +
		"Only the machine of the data folder can make one: with --url it is refused."
}

func (*backupCreateCommand) kind() string { return "backup" }

// backedUp says what was written.
type backedUp struct {
	File     string                `json:"file"`
	Bytes    int64                 `json:"bytes"`
	Manifest server.BackupManifest `json:"manifest"`
}

func (c *backupCreateCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		done, err := writeBackup(c.File, func(w io.Writer) error {
			_, err := api.Backup(ctx, c.WithKeys, w)
			return err
		})
		if err != nil {
			return err
		}
		return showOwn(a, sallyport.Success(c.kind(), "", done), func(p *page, b backedUp) {
			p.line("%s  %s", p.bold(clean(b.File)), bytesText(b.Bytes))
			keys := "not in it: secrets need their key, and a restored server signs with a new one"
			if b.Manifest.Keys {
				keys = "in it; keep the file as you keep keys"
			}
			p.pairs([][2]string{{"of", when(b.Manifest.CreatedAt)}, {"signed by", b.Manifest.PublicKey}, {"keys", keys}}...)
		})
	})
}

// writeBackup writes beside the file, checks what is on disk, and only then gives it its name.
func writeBackup(name string, write func(io.Writer) error) (_ backedUp, err error) {
	broken := func(err error) error {
		if own, ok := errors.AsType[*sallyport.Error](err); ok {
			return own
		}
		return invalid("%s: cannot be written: %v", name, err)
	}
	folder, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return backedUp{}, broken(err)
	}
	defer func() { _ = folder.Close() }()
	base := filepath.Base(name)
	if _, err := folder.Lstat(base); !errors.Is(err, fs.ErrNotExist) {
		return backedUp{}, invalid("%s: exists already; name a new file", name)
	}
	part := "." + base + "." + strconv.FormatInt(time.Now().UnixNano(), 36) + ".part"
	file, err := folder.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return backedUp{}, broken(err)
	}
	defer func() { _ = folder.Remove(part) }()
	done := backedUp{File: name}
	err = errors.Join(write(file), file.Sync())
	if err == nil {
		done.Bytes, err = file.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil {
		done.Manifest, err = server.CheckBackup(file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return backedUp{}, broken(err)
	}
	// A link never replaces what has come there meanwhile, and what it names is whole.
	if err := folder.Link(part, base); err != nil {
		return backedUp{}, broken(err)
	}
	dir, err := folder.Open(".")
	if err != nil {
		return backedUp{}, broken(err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return backedUp{}, broken(err)
	}
	return done, nil
}

type backupVerifyCommand struct {
	File      string `arg:"" help:"The backup." name:"file"`
	PublicKey string `help:"The key that must have signed it, in base64." placeholder:"KEY"`
	Scratch   string `help:"Unpack below this folder (default: the system's folder for temporary files)." placeholder:"DIR"`
}

// Help says what is checked.
func (*backupVerifyCommand) Help() string {
	return "Every byte is held against the signed manifest, every page and reference of the database is read, every file in it is held against " +
		"its sha256, and the audit trail of every tenant is verified. Without --public-key the manifest proves only that nothing was changed " +
		"by somebody without the key that it names. It needs room for the database once."
}

func (*backupVerifyCommand) kind() string { return "backup_verification" }

func (c *backupVerifyCommand) run(ctx context.Context, a *app) error {
	file, err := os.Open(c.File)
	if err != nil {
		return invalid("%s: cannot be opened: %v", c.File, errors.Unwrap(err))
	}
	defer func() { _ = file.Close() }()
	scratch := c.Scratch
	if scratch == "" {
		scratch = os.TempDir()
	}
	report, err := server.VerifyBackup(ctx, file, scratch, c.PublicKey)
	if err != nil {
		return err
	}
	return showOwn(a, sallyport.Success(c.kind(), "", report), printBackup)
}

func printBackup(p *page, r server.BackupReport) {
	p.line("%s  schema %d, %s", p.green("✓ whole"), r.Schema, plural(int(r.Contents), "content", "contents"))
	p.pairs([][2]string{{"of", when(r.Manifest.CreatedAt)}, {"by", clean(r.Manifest.Version)}, {"signed by", clean(r.Manifest.PublicKey)}}...)
	for _, t := range r.Trails {
		p.line("  trail of %s: %s", clean(string(t.TenantID)), clean(t.Message))
	}
	if r.Open > 0 {
		p.line("  %s", p.yellow(plural(int(r.Open), "execution was", "executions were")+" open; a restore closes them as lost"))
	}
}

type restoreCommand struct {
	File      string `arg:"" help:"The backup." name:"file"`
	PublicKey string `help:"The key that must have signed it, in base64." placeholder:"KEY"`
}

// Help says what it does.
func (*restoreCommand) Help() string {
	return "The data folder (--data) must not exist yet, or be empty: a restore never writes over anything. The backup is verified first, as " +
		"`backup verify` does it, and the folder appears whole or not at all. Executions that were open are closed as lost; none runs again."
}

func (*restoreCommand) kind() string { return "restore" }

func (c *restoreCommand) run(ctx context.Context, a *app) error {
	if a.args.URL != "" {
		return badUsage("a restore makes a data folder on this machine: name it with --data")
	}
	settings, err := a.settings()
	if err != nil {
		return err
	}
	file, err := os.Open(c.File)
	if err != nil {
		return invalid("%s: cannot be opened: %v", c.File, errors.Unwrap(err))
	}
	defer func() { _ = file.Close() }()
	report, err := server.Restore(ctx, file, settings.DataDir, c.PublicKey)
	if err != nil {
		return err
	}
	return showOwn(a, sallyport.Success(c.kind(), "", report), func(p *page, r server.BackupReport) {
		p.line("%s %s", p.green("restored"), p.bold(clean(r.Data)))
		printBackup(p, r)
		if !r.Manifest.Keys {
			p.line("  %s", p.yellow("the keys were not in it: the server will sign with a new one, and secrets need secrets.key"))
		}
	})
}
