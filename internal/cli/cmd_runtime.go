package cli

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/internal/runtimes"
)

// runtimeCommands look after the runtimes of this machine. They need no server: what they change is below the state folder, and
// what serves is decided by server.yaml.
type runtimeCommands struct {
	List     runtimeListCommand     `cmd:"" help:"List the runtimes of the settings and the images that are unpacked."`
	Pull     runtimePullCommand     `cmd:"" help:"Unpack the image of a runtime of the settings."`
	Add      runtimeAddCommand      `cmd:"" help:"Unpack an image and print the lines that pin it in server.yaml."`
	Verify   runtimeVerifyCommand   `cmd:"" help:"Compare every byte of unpacked images with what was unpacked."`
	Remove   runtimeRemoveCommand   `cmd:"" help:"Delete an unpacked image."`
	Packages runtimePackagesCommand `cmd:"" help:"List what scripts can import in a runtime."`
}

// runtimeSettings returns the settings and the store of this machine. A server elsewhere has its own.
func runtimeSettings(a *app, limits runtimes.Limits) (config.Settings, *runtimes.Store, error) {
	if a.args.URL != "" {
		return config.Settings{}, nil, invalid("runtimes belong to the machine that runs scripts: give the command there, without --url")
	}
	settings, err := a.settings()
	if err != nil {
		return settings, nil, err
	}
	store, err := runtimeStore(settings, limits)
	return settings, store, err
}

// runtimeRow is one runtime under these settings, or an image that no runtime names.
type runtimeRow struct {
	Name string `json:"name,omitempty"`
	// Kind is host, root, image or runner.
	Kind       string   `json:"kind"`
	Program    string   `json:"program,omitempty"`
	Root       string   `json:"root,omitempty"`
	Image      string   `json:"image,omitempty"`
	Digest     string   `json:"digest,omitempty"`
	Extensions []string `json:"extensions,omitempty"`
	// Ready says that runs can use it; Fault why not.
	Ready bool   `json:"ready"`
	Fault string `json:"fault,omitempty"`
	// Verified says that names, sizes and times of the files are those that were unpacked; of an image only.
	Verified bool             `json:"verified"`
	Bytes    int64            `json:"bytes,omitempty"`
	Files    int              `json:"files,omitempty"`
	LeftOut  *runtimes.Report `json:"left_out,omitempty"`
}

type runtimeList struct {
	Runtimes []runtimeRow `json:"runtimes"`
}

type runtimeListCommand struct{}

// Help says what is compared.
func (*runtimeListCommand) Help() string {
	return "An image counts as verified when names, kinds, sizes and times of its files are those that were unpacked; " +
		"`sallyport runtime verify` reads every byte."
}

func (*runtimeListCommand) kind() string { return "runtimes" }

func (c *runtimeListCommand) run(ctx context.Context, a *app) error {
	settings, store, err := runtimeSettings(a, runtimes.Limits{})
	if err != nil {
		return err
	}
	list := runtimeList{Runtimes: []runtimeRow{}}
	named := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(settings.Runtimes)) {
		row := runtimeRowOf(ctx, settings, store, name)
		named[row.Digest] = true
		list.Runtimes = append(list.Runtimes, row)
	}
	unpacked, err := store.List()
	if err != nil {
		return err
	}
	for _, u := range unpacked {
		if !named[u.Digest] {
			list.Runtimes = append(list.Runtimes, runtimeRow{
				Kind: "image", Image: u.Source, Digest: u.Digest, Bytes: u.Bytes, Files: u.Files, LeftOut: &u.LeftOut,
				Verified: store.Verify(ctx, u.Digest, false) == nil,
			})
		}
	}
	return showOwn(a, sallyport.Success(c.kind(), "", list), printRuntimes)
}

// runtimeRowOf says what a runtime of the settings is.
func runtimeRowOf(ctx context.Context, settings config.Settings, store *runtimes.Store, name string) runtimeRow {
	described := settings.Runtimes[name]
	row := runtimeRow{Name: name, Kind: "host", Program: described.Program, Root: described.Root, Image: described.Image, Digest: described.Digest}
	for _, allowed := range settings.AllowList(hostInterpreters()) {
		if allowed.Runtime == name {
			row.Extensions = append(row.Extensions, allowed.Extension)
		}
	}
	resolved := store.Resolve(ctx, []sallyport.Interpreter{settings.Interpreter(name)})[0]
	row.Fault = resolved.Fault
	switch {
	case settings.Executor == remote.Kind:
		row.Kind = "runner"
	case described.Image != "":
		row.Kind = "image"
		if found, err := store.Describe(described.Digest); err == nil {
			row.Bytes, row.Files, row.LeftOut = found.Bytes, found.Files, &found.LeftOut
			row.Verified = store.Verify(ctx, described.Digest, false) == nil
		}
	case described.Root != "":
		row.Kind = "root"
	default:
		if info, err := os.Stat(described.Program); err != nil || !info.Mode().IsRegular() {
			row.Fault = described.Program + " is not there"
		}
	}
	row.Ready = row.Fault == ""
	return row
}

func printRuntimes(p *page, list runtimeList) {
	var rows [][]string
	for _, r := range list.Runtimes {
		state := "ready"
		switch {
		case r.Fault != "":
			state = r.Fault
		case r.Name == "":
			state = "no runtime names it"
		case r.Kind == "image" && r.Verified:
			state = "ready, verified"
		}
		size := ""
		if r.Bytes > 0 {
			size = bytesText(r.Bytes)
		}
		rows = append(rows, []string{r.Name, r.Kind, r.Digest, size, joinWords(r.Extensions), state})
	}
	p.table([]string{"name", "kind", "digest", "size", "scripts", "state"}, rows)
}

// unpackFlags bound an image.
type unpackFlags struct {
	MaxBytes int64 `help:"Refuse an image that unpacks to more bytes than this (default: 16 GiB)." placeholder:"N"`
}

func (f unpackFlags) limits() (runtimes.Limits, error) {
	if f.MaxBytes < 0 {
		return runtimes.Limits{}, invalid("--max-bytes: want a number of bytes, got %d", f.MaxBytes)
	}
	return runtimes.Limits{Bytes: f.MaxBytes}, nil
}

type runtimePullCommand struct {
	Name string `arg:"" help:"A runtime of the settings." name:"runtime"`
	unpackFlags
}

// Help says when nothing is done.
func (*runtimePullCommand) Help() string {
	return "Every layer is held against the digests that the pinned one leads to. An image that is unpacked already is left as it is. A " +
		"server takes it up at its next start. Registries are asked with the credentials of docker's own configuration."
}

func (*runtimePullCommand) kind() string { return "runtime" }

func (c *runtimePullCommand) run(ctx context.Context, a *app) error {
	limits, err := c.limits()
	if err != nil {
		return err
	}
	settings, store, err := runtimeSettings(a, limits)
	if err != nil {
		return err
	}
	described, err := imageOf(settings, c.Name)
	if err != nil {
		return err
	}
	return addImage(ctx, a, store, described.Image, described.Digest, c.Name)
}

// imageOf is the runtime of a name, which must be an image.
func imageOf(settings config.Settings, name string) (config.RuntimeSettings, error) {
	described, known := settings.Runtimes[name]
	switch {
	case !known:
		return described, invalid("there is no runtime %q in the settings; there is %s", name, orNone(slices.Sorted(maps.Keys(settings.Runtimes))))
	case described.Image == "":
		return described, invalid("the runtime %s is no image, so there is nothing to unpack", name)
	}
	return described, nil
}

func orNone(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

type runtimeAddCommand struct {
	Source string `arg:"" help:"A tarball of docker save, the folder of an OCI layout, or a reference; with @sha256:... to demand that digest." name:"image"`
	unpackFlags
}

// Help says what to do with what is printed.
func (*runtimeAddCommand) Help() string {
	return "Without a digest the image that is there now is taken and its digest printed. The lines that are printed go into server.yaml, " +
		"with a name of your own; until then nothing uses the image."
}

func (*runtimeAddCommand) kind() string { return "runtime" }

func (c *runtimeAddCommand) run(ctx context.Context, a *app) error {
	limits, err := c.limits()
	if err != nil {
		return err
	}
	_, store, err := runtimeSettings(a, limits)
	if err != nil {
		return err
	}
	source, digest, pinned := strings.Cut(c.Source, "@")
	if pinned {
		if parsed, err := sallyport.ParseDigest(digest); err != nil || string(parsed) != digest {
			return invalid("want sha256: and 64 lower-case hex digits after the @, got %q", digest)
		}
	}
	// A name such as python:3.12 is a reference, unless there is a file of that name.
	if _, err := os.Stat(source); err == nil || strings.HasPrefix(source, ".") {
		if source, err = filepath.Abs(source); err != nil {
			return invalid("%v", err)
		}
	}
	return addImage(ctx, a, store, source, digest, "")
}

// addedImage is what came of an image.
type addedImage struct {
	runtimes.Unpacked
	// Setting is the value of image in server.yaml.
	Setting string `json:"setting"`
}

func addImage(ctx context.Context, a *app, store *runtimes.Store, source, digest, name string) error {
	out, err := store.Add(ctx, source, digest, func(layer, layers int) {
		a.progress("layer %d of %d", layer, layers)
	})
	if err != nil {
		return err
	}
	// A tag moves on; the digest stays.
	setting := out.Source
	if tag := strings.LastIndexByte(setting, ':'); !strings.HasPrefix(setting, "/") && tag > strings.LastIndexByte(setting, '/') {
		setting = setting[:tag]
	}
	added := addedImage{Unpacked: out, Setting: setting + "@" + out.Digest}
	return showOwn(a, sallyport.Success("runtime", "", added), func(p *page, u addedImage) {
		p.line("%s", p.bold("unpacked "+clean(u.Source)))
		left := []string{}
		if n := u.LeftOut.Devices; n > 0 {
			left = append(left, plural(n, "device", "devices"))
		}
		if n := u.LeftOut.Privileges; n > 0 {
			left = append(left, "privileges of "+plural(n, "file", "files"))
		}
		p.pairs([][2]string{
			{"digest", u.Digest}, {"size", bytesText(u.Bytes) + " in " + plural(u.Files, "file", "files")}, {"left out", strings.Join(left, ", ")},
		}...)
		if name == "" {
			p.line("%s", p.dim("in server.yaml:"))
			p.line("runtimes:\n  NAME:\n    image: %s\n    program: /usr/bin/python3", clean(u.Setting))
		}
	})
}

type runtimeVerifyCommand struct {
	Names []string `arg:"" help:"Runtimes of the settings or digests (default: every unpacked image)." name:"runtime" optional:""`
}

func (*runtimeVerifyCommand) kind() string { return "verification" }

// verifiedImage is one image and what was found wrong with it.
type verifiedImage struct {
	Name   string `json:"name,omitempty"`
	Digest string `json:"digest"`
	Valid  bool   `json:"valid"`
	Fault  string `json:"fault,omitempty"`
}

type verifiedImages struct {
	Images []verifiedImage `json:"images"`
}

func (c *runtimeVerifyCommand) run(ctx context.Context, a *app) error {
	settings, store, err := runtimeSettings(a, runtimes.Limits{})
	if err != nil {
		return err
	}
	found := verifiedImages{Images: []verifiedImage{}}
	for _, name := range c.Names {
		digest, err := digestNamed(settings, name)
		if err != nil {
			return err
		}
		found.Images = append(found.Images, verifiedImage{Name: name, Digest: digest})
	}
	if len(c.Names) == 0 {
		list, err := store.List()
		if err != nil {
			return err
		}
		for _, u := range list {
			found.Images = append(found.Images, verifiedImage{Digest: u.Digest})
		}
	}
	whole := true
	for i := range found.Images {
		image := &found.Images[i]
		err := store.Verify(ctx, image.Digest, true)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if image.Valid = err == nil; err != nil {
			image.Fault, whole = err.Error(), false
		}
	}
	envelope := sallyport.Success(c.kind(), "", found)
	verdict := sallyport.Errorf("cli.runtime", sallyport.CodeSandboxUnavailable, "an image is not what was unpacked: remove it and pull it again")
	if !whole {
		envelope.Error = sallyport.Public(verdict)
	}
	if err := showOwn(a, envelope, printVerified); err != nil || whole {
		return err
	}
	return reportedError{exitCode(verdict)}
}

func printVerified(p *page, found verifiedImages) {
	if len(found.Images) == 0 {
		p.line("%s", p.dim("none"))
	}
	for _, image := range found.Images {
		mark, rest := p.green("✓"), ""
		if !image.Valid {
			mark, rest = p.red("✗"), "  "+clean(image.Fault)
		}
		p.line("%s %s%s", mark, clean(image.Digest), rest)
	}
}

// digestNamed is the digest of an argument: of a runtime of the settings, or itself.
func digestNamed(settings config.Settings, name string) (string, error) {
	if strings.HasPrefix(name, "sha256:") {
		digest, err := sallyport.ParseDigest(name)
		return string(digest), err
	}
	described, err := imageOf(settings, name)
	return described.Digest, err
}

type runtimeRemoveCommand struct {
	Name  string `arg:"" help:"A runtime of the settings or a digest." name:"runtime"`
	Force bool   `help:"Delete it although the settings name it: scripts that use it are refused until it is pulled again."`
}

func (*runtimeRemoveCommand) kind() string { return "runtime" }

func (c *runtimeRemoveCommand) run(ctx context.Context, a *app) error {
	settings, store, err := runtimeSettings(a, runtimes.Limits{})
	if err != nil {
		return err
	}
	digest, err := digestNamed(settings, c.Name)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(settings.Runtimes)) {
		if settings.Runtimes[name].Digest == digest && !c.Force {
			return invalid("the settings name it as %s: take it out of runtimes and restart the server first, or delete it all the same with --force", name)
		}
	}
	if err := store.Remove(ctx, digest); errors.Is(err, runtimes.ErrNotUnpacked) {
		return invalid("%s is not unpacked on this machine", digest)
	} else if err != nil {
		return err
	}
	return showOwn(a, sallyport.Success(c.kind(), "", map[string]string{"digest": digest}), func(p *page, data map[string]string) {
		p.line("removed %s", data["digest"])
	})
}

type runtimePackagesCommand struct {
	Name string `arg:"" help:"A runtime of the settings, or python or node for the host's." name:"runtime"`
}

// Help says where the list comes from.
func (*runtimePackagesCommand) Help() string {
	return "The names come from what installers leave beside the packages; nothing is run. Packages of Node are those in /node_modules and, on " +
		"Debian, of the system: a script does not find those of npm install --global."
}

func (*runtimePackagesCommand) kind() string { return "packages" }

type packageList struct {
	Runtime  string              `json:"runtime"`
	Packages []sallyport.Package `json:"packages"`
}

func (c *runtimePackagesCommand) run(ctx context.Context, a *app) error {
	settings, store, err := runtimeSettings(a, runtimes.Limits{})
	if err != nil {
		return err
	}
	row, err := runtimeNamed(ctx, settings, store, c.Name)
	if err != nil {
		return err
	}
	found, err := runtimes.Packages(ctx, row)
	if err != nil {
		return err
	}
	if found == nil {
		found = []sallyport.Package{}
	}
	return showOwn(a, sallyport.Success(c.kind(), "", packageList{c.Name, found}), func(p *page, list packageList) {
		var rows [][]string
		for _, one := range list.Packages {
			rows = append(rows, []string{one.Language, one.Name, one.Version})
		}
		p.table([]string{"language", "name", "version"}, rows)
	})
}

// runtimeNamed is the row of a runtime of the settings, or the first row of the allow-list that reports this name.
func runtimeNamed(ctx context.Context, settings config.Settings, store *runtimes.Store, name string) (sallyport.Interpreter, error) {
	if settings.Executor == remote.Kind {
		return sallyport.Interpreter{}, invalid("with the executor remote, runtimes are on the runners: give the command there")
	}
	var rows []sallyport.Interpreter
	if _, known := settings.Runtimes[name]; known {
		rows = append(rows, settings.Interpreter(name))
	}
	var names []string
	for _, row := range settings.AllowList(hostInterpreters()) {
		if row.Runtime == name {
			rows = append(rows, row)
		}
		if !slices.Contains(names, row.Runtime) {
			names = append(names, row.Runtime)
		}
	}
	if len(rows) == 0 {
		return sallyport.Interpreter{}, invalid("there is no runtime %q in the settings; there is %s", name, orNone(names))
	}
	row := store.Resolve(ctx, rows[:1])[0]
	if row.Fault != "" {
		return row, sallyport.Errorf("cli.runtime", sallyport.CodeSandboxUnavailable, "the runtime %s cannot serve: %s", name, row.Fault)
	}
	return row, nil
}
