package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/registry"
)

type exportCommand struct {
	skillArg
	Revision string `help:"The revision, by id or number (default: the published one, else the latest)." placeholder:"ID"`
	Output   string `help:"Write to this file; - is standard output (default: SLUG.zip here)." placeholder:"FILE" short:"o"`
	Format   string `help:"zip or tar.gz (default: by the name of --output, else zip)." enum:",zip,tar.gz" default:"" placeholder:"FORMAT"`
	Force    bool   `help:"Replace the file if it exists." short:"f"`
}

// Help says what is in the archive.
func (*exportCommand) Help() string {
	return "The archive holds one folder, named after the slug, with every file of the revision, byte for byte. Two exports of a " +
		"revision are the same bytes, and importing one gives the same digest."
}

func (*exportCommand) kind() string { return "export" }

// exported says what an export wrote.
type exported struct {
	Path          string               `json:"path"`
	SizeBytes     int                  `json:"size_bytes"`
	ArchiveDigest sallyport.Digest     `json:"archive_digest"`
	RevisionID    sallyport.RevisionID `json:"revision_id"`
	Digest        sallyport.Digest     `json:"digest"`
}

func (c *exportCommand) run(ctx context.Context, a *app) error {
	toStdout := c.Output == "-"
	if toStdout && a.args.JSON {
		return badUsage("--output - and --json each want standard output for themselves; give one")
	}
	if toStdout && a.outTerminal {
		return badUsage("an archive is not for a terminal: redirect standard output, or name a file with --output")
	}
	format := registry.ArchiveFormat(c.Format)
	if format == "" {
		format = formatOf(c.Output)
	}
	return a.withClient(ctx, func(api *client.Client) error {
		id, err := revisionNamed(ctx, api, c.ref(), c.Revision)
		if err != nil {
			return err
		}
		export, err := api.Export(ctx, c.ref(), id, format)
		if err != nil {
			return err
		}
		if toStdout {
			if _, err := a.stdout.Write(export.Archive); err != nil {
				return &sallyport.Error{Op: "cli.export", Code: sallyport.CodeInternal, Err: err}
			}
			return nil
		}
		name := c.Output
		if name == "" {
			name = c.Slug + "." + string(format)
		}
		write := writeNew
		if c.Force {
			write = replace
		}
		if err := write(name, export.Archive); err != nil {
			return err
		}
		return showOwn(a, sallyport.Success(c.kind(), "", exported{
			name, len(export.Archive), sallyport.DigestOf(export.Archive), export.RevisionID, export.Digest,
		}), func(p *page, e exported) {
			p.line("%s %s  %s  %s", p.green("exported"), p.bold(clean(e.Path)), bytesText(int64(e.SizeBytes)), p.dim(string(e.Digest)))
		})
	})
}

// formatOf is the format that a file's name asks for.
func formatOf(name string) registry.ArchiveFormat {
	lower := strings.ToLower(name)
	if strings.HasSuffix(lower, ".tar.gz") || strings.HasSuffix(lower, ".tgz") {
		return registry.ArchiveTarGz
	}
	return registry.ArchiveZip
}

// replace writes a file whole or not at all, in the place of one that may be there.
func replace(name string, content []byte) error {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return invalid("the file cannot be made: %v", err)
	}
	defer func() { _ = root.Close() }()
	part := "." + filepath.Base(name) + ".part"
	err = root.WriteFile(part, content, 0o600)
	if err == nil {
		err = root.Rename(part, filepath.Base(name))
	}
	if err != nil {
		_ = root.Remove(part)
		return invalid("%s: cannot be written: %v", name, err)
	}
	return nil
}
