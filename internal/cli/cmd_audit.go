package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/client"
)

// auditCommands read the trail.
type auditCommands struct {
	List   auditListCommand   `cmd:"" help:"List entries, newest first."`
	Verify auditVerifyCommand `cmd:"" help:"Check that the trail is whole."`
	Export auditExportCommand `cmd:"" help:"Write every entry as one JSON line, oldest first."`
}

type auditListCommand struct {
	Execution   string `help:"Only the entries of this execution." placeholder:"ID"`
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
		ExecutionID: sallyport.ExecutionID(c.Execution), Action: sallyport.Action(c.Action), Entity: c.Entity,
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
	Checkpoints string `help:"Prove the tail against checkpoints kept outside (a file of JSON lines)." placeholder:"FILE"`
}

func (*auditVerifyCommand) kind() string { return "verification" }

func (c *auditVerifyCommand) run(ctx context.Context, a *app) error {
	outside, err := readCheckpoints(c.Checkpoints)
	if err != nil {
		return err
	}
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.VerifyTrail(ctx, outside)
		if err != nil {
			return err
		}
		if err := show(a, envelope, printVerdict); err != nil {
			return err
		}
		if envelope.Data.Result != "valid" {
			return reportedError{exitTrailBroken}
		}
		return nil
	})
}

// exitTrailBroken is the exit code of a verification that found the trail changed: state in the way.
const exitTrailBroken = 14

// maxCheckpoints bounds a file of checkpoints.
const maxCheckpoints = 8 << 20

func readCheckpoints(path string) ([]audit.Checkpoint, error) {
	if path == "" {
		return nil, nil
	}
	data, err := readFile(path, maxCheckpoints)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	checkpoints := []audit.Checkpoint{}
	for decoder.More() {
		var one audit.Checkpoint
		if err := decoder.Decode(&one); err != nil {
			return nil, invalid("%s: checkpoint %d cannot be read: %v", path, len(checkpoints)+1, err)
		}
		checkpoints = append(checkpoints, one)
	}
	return checkpoints, nil
}

func printVerdict(p *page, v audit.Verdict) {
	mark := p.green("✓ valid")
	if v.Result != "valid" {
		mark = p.red("✗ " + clean(v.Result))
		if v.Sequence > 0 {
			mark += fmt.Sprintf(" at entry %d", v.Sequence)
		}
	}
	p.line("%s  %s checked; %s", mark, plural(int(v.Checked), "entry", "entries"), clean(v.Message))
	p.line("  %s", p.dim("tail: "+clean(v.Tail)))
}

type auditExportCommand struct{}

// Help says what is written.
func (*auditExportCommand) Help() string {
	return "Each line is one entry, exactly as it is stored, with its hash and the hash of the one before it. Each line is a JSON " +
		"document of its own, so --json is not for this command."
}

func (*auditExportCommand) kind() string { return "audit" }

func (c *auditExportCommand) run(ctx context.Context, a *app) error {
	if a.args.JSON {
		return badUsage("--json is not for export: every line is a JSON document already")
	}
	return a.withClient(ctx, func(api *client.Client) error {
		out := bufio.NewWriter(a.stdout)
		after := int64(0)
		for {
			envelope, err := api.Entries(ctx, audit.Filter{After: after, Limit: 1000})
			if err != nil {
				return err
			}
			for _, entry := range envelope.Data.Entries {
				line, err := json.Marshal(entry)
				if err != nil {
					return &sallyport.Error{Op: "cli.export", Code: sallyport.CodeInternal, Err: err}
				}
				_, _ = out.Write(append(line, '\n')) // a failed write stays in out until Flush
			}
			if after = envelope.Data.NextAfter; after == 0 {
				break
			}
		}
		if err := out.Flush(); err != nil {
			return invalid("standard output cannot be written: %v", err)
		}
		return nil
	})
}
