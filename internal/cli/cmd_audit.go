package cli

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/internal/reply"
)

// auditCommands read the trail.
type auditCommands struct {
	List   auditListCommand   `cmd:"" help:"List entries, newest first."`
	Verify auditVerifyCommand `cmd:"" help:"Check that the trail is whole."`
	Export auditExportCommand `cmd:"" help:"Write every entry as one JSON line, oldest first."`
	Calls  auditCallsCommand  `cmd:"" help:"List calls of MCP tools, newest first."`
}

type auditListCommand struct {
	Execution   string `help:"Only the entries of this execution." placeholder:"ID"`
	Actor       string `help:"Only entries of what this principal did." placeholder:"PRINCIPAL"`
	Action      string `help:"Only entries of this action, such as script.run." placeholder:"ACTION"`
	Entity      string `help:"Only entries about this, such as SLUG or SLUG/SCRIPT." placeholder:"ENTITY"`
	Since       string `help:"Only entries from this instant on, or younger than this, such as 24h." placeholder:"TIME"`
	Until       string `help:"Only entries before this instant." placeholder:"TIME"`
	OldestFirst bool   `help:"List oldest first."`
	After       int64  `help:"Go on behind this sequence number." placeholder:"N"`
	Limit       int    `help:"At most this many, up to 1000." default:"100"`
}

func (*auditListCommand) kind() string { return "audit" }

func (c *auditListCommand) run(ctx context.Context, a *app) error {
	filter := audit.Filter{
		ExecutionID: sallyport.ExecutionID(c.Execution), Actor: sallyport.PrincipalID(c.Actor), Action: sallyport.Action(c.Action), Entity: c.Entity,
		NewestFirst: !c.OldestFirst && c.Execution == "", After: c.After, Limit: c.Limit,
	}
	var err error
	if filter.Since, err = instant("--since", c.Since); err != nil {
		return err
	}
	if filter.Until, err = instant("--until", c.Until); err != nil {
		return err
	}
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.Entries(ctx, filter)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, list client.EntryList) {
			printEntries(p, list.Entries)
			if list.NextAfter != 0 {
				p.line("%s", p.dim("more: --after "+strconv.FormatInt(list.NextAfter, 10)))
			}
		})
	})
}

func printEntries(p *page, entries []sallyport.Entry) {
	rows := make([][]string, 0, len(entries))
	for _, e := range entries {
		rows = append(rows, []string{
			strconv.FormatInt(e.Sequence, 10), when(e.At), string(e.Action), e.Entity, string(e.Actor), gist(e),
		})
	}
	p.table([]string{"NO", "AT", "ACTION", "ENTITY", "BY", "DETAIL"}, rows)
}

// gist is the part of an entry's detail that says what became of it.
func gist(e sallyport.Entry) string {
	var detail map[string]any
	if json.Unmarshal(e.Detail, &detail) != nil {
		return ""
	}
	for _, key := range []string{"status", "code", "pin", "digest", "revision_digest", "name"} {
		if value, ok := detail[key].(string); ok && value != "" {
			if digest, err := sallyport.ParseDigest(value); err == nil {
				return short(digest)
			}
			return value
		}
	}
	return ""
}

// instant reads a time of RFC 3339, or a duration that lies back from now. Nothing is the zero time.
func instant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(-d).UTC(), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, invalid("%s wants a time such as 2026-01-31T08:00:00Z or a duration such as 24h, got %q", flag, text)
	}
	return at, nil
}

type auditVerifyCommand struct {
	File        string `arg:"" help:"An exported trail to check instead, without any server." optional:""`
	Checkpoints string `help:"Prove the tail against checkpoints kept outside (a file of JSON lines)." placeholder:"FILE"`
	PublicKey   string `help:"The key that must have signed the checkpoints, in base64; for an exported trail." placeholder:"KEY"`
}

// Help says what the exit code means.
func (*auditVerifyCommand) Help() string {
	return "The exit code is 0 for a trail that is whole and 20 for one that is not. Entries that are missing at the end are only " +
		"proven by checkpoints that were kept outside the database: the server appends each to checkpoints.jsonl in the data " +
		"folder and logs it."
}

func (*auditVerifyCommand) kind() string { return "verification" }

func (c *auditVerifyCommand) run(ctx context.Context, a *app) error {
	outside, err := readCheckpoints(c.Checkpoints)
	if err != nil {
		return err
	}
	if c.File != "" {
		return c.verifyFile(a, outside)
	}
	if c.PublicKey != "" {
		return badUsage("--public-key is for an exported trail; a server knows its own key")
	}
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.VerifyTrail(ctx, outside)
		if err != nil {
			return err
		}
		return concluded(*envelope.Data, show(a, envelope, printVerdict))
	})
}

// verifyFile checks an exported trail, here and now.
func (c *auditVerifyCommand) verifyFile(a *app, outside []audit.Checkpoint) error {
	evidence := audit.Evidence{Checkpoints: outside}
	if c.PublicKey != "" {
		key, err := base64.StdEncoding.DecodeString(c.PublicKey)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return invalid("--public-key wants the base64 of an Ed25519 key, as checkpoints carry it")
		}
		evidence.PublicKey = key
	}
	file, err := os.Open(c.File)
	if err != nil {
		return invalid("%s: cannot be opened: %v", c.File, errors.Unwrap(err))
	}
	defer func() { _ = file.Close() }()
	verdict, err := audit.VerifyExport(file, evidence)
	if err != nil {
		return err
	}
	return concluded(verdict, showOwn(a, sallyport.Success(c.kind(), "", verdict), printVerdict))
}

// concluded is the outcome of a verification whose verdict was printed. The request succeeded, so a broken trail is an
// outcome.
func concluded(v audit.Verdict, err error) error {
	if err == nil && v.Result != audit.ResultValid {
		return reportedError{reply.ForClass(sallyport.ClassOutcome).ExitCode}
	}
	return err
}

// maxCheckpoints bounds a file of checkpoints.
const maxCheckpoints = 8 << 20

// readCheckpoints reads JSON lines. A last line without an end was cut off by a crash and is left out.
func readCheckpoints(path string) ([]audit.Checkpoint, error) {
	if path == "" {
		return nil, nil
	}
	data, err := readFile(path, maxCheckpoints)
	if err != nil {
		return nil, err
	}
	if len(data) > maxCheckpoints {
		return nil, invalid("%s: is over %s; give the newest lines of it", path, bytesText(maxCheckpoints))
	}
	checkpoints := []audit.Checkpoint{}
	for line := range bytes.Lines(data) {
		whole, ended := bytes.CutSuffix(line, []byte("\n"))
		decoder := json.NewDecoder(bytes.NewReader(whole))
		decoder.DisallowUnknownFields()
		var one audit.Checkpoint
		switch err := decoder.Decode(&one); {
		case errors.Is(err, io.EOF):
		case err == nil:
			checkpoints = append(checkpoints, one)
		case ended:
			return nil, invalid("%s: checkpoint %d cannot be read: %v", path, len(checkpoints)+1, err)
		}
	}
	return checkpoints, nil
}

func printVerdict(p *page, v audit.Verdict) {
	mark := p.green("✓ valid")
	if v.Result != audit.ResultValid {
		mark = p.red("✗ " + clean(v.Result))
		if v.Sequence > 0 {
			mark += fmt.Sprintf(" at entry %d", v.Sequence)
		}
	}
	p.line("%s  %s checked; %s", mark, plural(int(v.Checked), "entry", "entries"), clean(v.Message))
	p.line("  %s", p.dim("tail: "+clean(v.Tail)))
}
