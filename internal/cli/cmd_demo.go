package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/examples"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/registry"
)

type demoCommand struct {
	Keep      string `help:"Work in this new or empty folder and leave it, so that an agent can go on with it." placeholder:"DIR"`
	Delegated bool   `help:"Set on the demo that runs inside a scope of its own." hidden:""`
}

// Help says what happens.
func (*demoCommand) Help() string {
	return "Everything is real: the example skills are imported into a fresh data folder, one script is granted, a server listens on " +
		"loopback, an MCP client calls it, and the script runs inside bubblewrap. Without --keep nothing is left behind."
}

func (*demoCommand) kind() string { return "demo" }

const (
	demoSlug   = "csv-profiler"
	demoScript = "scripts/profile_csv.py"
	demoCSV    = "order,city,amount,day\n1001,Berlin,19.90,2026-03-01\n1002,berlin ,5.00,2026-03-02\n" +
		"1003,Lagos,n/a,02/03/2026\n1004,Quito,12.50,2026-03-04\n1004,Quito,12.50,2026-03-04\n"
)

// demoData is what demo prints with --json.
type demoData struct {
	DataDir   string                 `json:"data_dir"`
	Kept      bool                   `json:"kept"`
	Executor  sallyport.Capabilities `json:"executor"`
	Isolation config.Isolation       `json:"isolation"`
	Import    registry.ImportReport  `json:"import"`
	Refused   *sallyport.PublicError `json:"refused_before_grant"`
	Grant     sallyport.Grant        `json:"grant"`
	MCPURL    string                 `json:"mcp_url"`
	Tools     []string               `json:"tools"`
	Execution sallyport.Execution    `json:"execution"`
	Entries   []sallyport.Entry      `json:"audit"`
	Verdict   audit.Verdict          `json:"verification"`
}

func (c *demoCommand) run(ctx context.Context, a *app) (err error) {
	if a.args.URL != "" || a.args.Data != "" {
		return badUsage("demo brings its own data folder: use --keep DIR instead of --data and --url")
	}
	// A person sees each step as it happens; with --json the one document comes at the end.
	p := a.page
	if a.args.JSON {
		p = &page{w: io.Discard}
	}
	if !c.Delegated {
		if done, err := a.inOwnScope(ctx); done {
			return err
		}
	}
	settings, err := a.demoSettings(c)
	if err != nil {
		return err
	}
	if c.Keep == "" {
		defer func() { err = errors.Join(err, os.RemoveAll(filepath.Dir(settings.DataDir))) }()
	}
	d := &demo{app: a, page: p, settings: settings, data: demoData{DataDir: settings.DataDir, Kept: c.Keep != ""}}
	if err := d.sandbox(ctx); err != nil {
		return err
	}
	o, err := a.own(ctx, d.settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := errors.Join(d.story(ctx, o), o.close(ctx)); err != nil {
		return err
	}
	d.connect()
	if a.args.JSON {
		return a.writeJSON(sallyport.Success("demo", "", d.data))
	}
	return nil
}

// demo is one telling of the story.
type demo struct {
	app      *app
	page     *page
	settings config.Settings
	data     demoData
	step     int
}

func (d *demo) heading(text string) {
	d.step++
	d.page.line("%s", d.page.bold(pad(string(rune('0'+d.step)), 2)+text))
}

func (d *demo) say(format string, args ...any) { d.page.line("  "+format, args...) }

// sandbox asks the host before anything is made. What is missing is said, and run without only under the setting that
// has a name.
func (d *demo) sandbox(ctx context.Context) error {
	executor, err := newExecutor(d.settings, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	found := executor.Capabilities(ctx)
	if err := closeExecutor(executor); err != nil {
		return err
	}
	d.heading("Sandbox")
	if !found.Available {
		return sallyport.Errorf("cli.demo", sallyport.CodeSandboxUnavailable, "%s. %s", found.Reason, found.Remedy)
	}
	d.data.Executor = found
	if len(found.Missing) > 0 {
		d.settings.Isolation = config.IsolationDegrade
		d.say("%s: this session lacks %s", d.page.yellow("isolation: degrade"), layers(found.Missing))
		d.say("%s", d.page.dim(clean(found.Remedy)))
	}
	d.data.Isolation = d.settings.Isolation
	d.say("bubblewrap enforces %s, tried out inside one just now", plural(len(found.Layers), "layer", "layers"))
	return nil
}

func (d *demo) story(ctx context.Context, o *owner) error {
	operator, err := client.New(client.Config{URL: localURL, Transport: client.InProcess(o.local)})
	if err != nil {
		return err
	}
	return errors.Join(d.importSkills(ctx, operator), d.atWork(ctx, o, operator))
}

func (d *demo) importSkills(ctx context.Context, operator *client.Client) error {
	d.heading("Import")
	folder, err := os.MkdirTemp("", "sallyport-skills-")
	if err != nil {
		return &sallyport.Error{Op: "cli.demo", Code: sallyport.CodeInternal, Err: err}
	}
	defer func() { _ = os.RemoveAll(folder) }()
	skills := filepath.Join(folder, "skills")
	if err := os.CopyFS(skills, examples.Skills()); err != nil {
		return &sallyport.Error{Op: "cli.demo", Code: sallyport.CodeInternal, Err: err}
	}
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(registry.WriteTar(ctx, writer, []string{skills})) }()
	report, err := operator.Import(ctx, reader, registry.ImportOptions{Publish: true, Message: "the example skills"})
	_ = reader.Close()
	if err != nil {
		return err
	}
	d.data.Import = *report.Data
	var slugs []string
	for _, skill := range report.Data.Skills {
		slugs = append(slugs, skill.Slug)
	}
	d.say("%s published: %s", plural(len(slugs), "skill", "skills"), joinWords(slugs))
	return nil
}

func (d *demo) atWork(ctx context.Context, o *owner, operator *client.Client) error {
	if d.data.Import.Totals.Skills == 0 {
		return nil // the import failed and said so
	}
	var plain net.ListenConfig
	listener, err := plain.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return invalid("listen: %v", err)
	}
	server := httpServer(ctx, o.server.Handler(), d.settings.LongestRun())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	d.data.MCPURL = urlOf(d.settings, listener.Addr()) + "/mcp"
	err = d.tell(ctx, operator)
	stopErr := server.Close()
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		stopErr = errors.Join(stopErr, serveErr)
	}
	return errors.Join(err, stopErr)
}

func (d *demo) tell(ctx context.Context, operator *client.Client) error {
	d.heading("Serve")
	agent, err := d.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = agent.Close() }()
	d.say("an MCP client is connected to %s", d.data.MCPURL)
	d.say("tools: %s", joinWords(d.data.Tools))

	d.heading("Grant")
	refused, err := d.execute(ctx, agent)
	if err != nil {
		return err
	}
	if d.data.Refused = refused.Error; refused.Error == nil {
		return sallyport.Errorf("cli.demo", sallyport.CodeInternal, "a script ran without a grant")
	}
	d.say("before: execute_cloud_skill is refused, %s", d.page.yellow(string(refused.Error.Code)))
	if err := d.grant(ctx, operator); err != nil {
		return err
	}

	d.heading("Run")
	d.say("execute_cloud_skill %s %s", demoSlug, demoScript)
	done, err := d.execute(ctx, agent)
	if err != nil {
		return err
	}
	if done.Data == nil {
		return &sallyport.Error{Op: "cli.demo", Code: done.Error.Code, Message: done.Error.Message}
	}
	d.data.Execution = *done.Data
	d.printExecution(*done.Data)
	if err := done.Data.Err(); err != nil {
		return err
	}

	d.heading("Audit")
	return d.trail(ctx, operator)
}

func (d *demo) grant(ctx context.Context, operator *client.Client) error {
	view, err := operator.Skill(ctx, sallyport.SkillRef{Slug: demoSlug})
	if err != nil {
		return err
	}
	revision := view.Data.Published
	issued, err := operator.IssueGrant(ctx, access.IssueRequest{
		Ref: sallyport.SkillRef{Slug: demoSlug}, ScriptPath: demoScript, RevisionID: revision.ID, ExpectedDigest: revision.Digest,
	})
	if err != nil {
		return err
	}
	d.data.Grant = issued.Data.Grant
	total := int64(0)
	for _, component := range revision.Components {
		total += component.Size
	}
	d.say("%s %s %s of exactly these bytes: %s, %s", d.page.green("granted"), demoSlug, demoScript,
		plural(len(revision.Components), "file", "files"), bytesText(total))
	d.say("%s", d.page.dim("pin "+string(revision.Digest)))
	return nil
}

func (d *demo) trail(ctx context.Context, operator *client.Client) error {
	entries, err := operator.Entries(ctx, audit.Filter{Limit: 1000})
	if err != nil {
		return err
	}
	told := []sallyport.Action{
		sallyport.ActionScriptDenied, sallyport.ActionGrantIssue, sallyport.ActionScriptRun, sallyport.ActionScriptFinished,
	}
	for _, entry := range entries.Data.Entries {
		if slices.Contains(told, entry.Action) {
			d.data.Entries = append(d.data.Entries, entry)
			d.say("%s %s %s", d.page.dim(pad("#"+itoa(entry.Sequence), 4)), pad(string(entry.Action), 16), clean(gist(entry)))
		}
	}
	verdict, err := operator.VerifyTrail(ctx, nil)
	if err != nil {
		return err
	}
	d.data.Verdict = *verdict.Data
	if verdict.Data.Result != audit.ResultValid {
		return sallyport.Errorf("cli.demo", sallyport.CodeInternal, "the audit trail is %s", verdict.Data.Result)
	}
	d.say("%s, %s hang together", d.page.green("the trail is valid"), plural(int(verdict.Data.Checked), "entry", "entries"))
	return nil
}
