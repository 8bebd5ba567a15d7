package httpapi

import (
	"math"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
	"github.com/sallyport-dev/sallyport/records"
	"github.com/sallyport-dev/sallyport/registry"
)

// deleteSkill archives a skill until it is purged.
func deleteSkill(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	skill, err := c.api.cfg.Skills.Delete(c.ctx(), p, c.skillRef(c.query.text("team_id")))
	return ok(registry.SkillView{Skill: skill}), err
}

func purgeSkill(c *call, p sallyport.Principal) (answer, error) {
	var body struct {
		DryRun bool `json:"dry_run"`
	}
	if err := c.decodeOptional(&body); err != nil {
		return answer{}, err
	}
	report, err := c.api.cfg.Skills.Purge(c.ctx(), p, c.skillRef(c.query.text("team_id")), body.DryRun)
	report.Removed, report.Kept = list(report.Removed), list(report.Kept)
	return ok(report), err
}

func purgeExecutions(c *call, p sallyport.Principal) (answer, error) {
	var body struct {
		Before *string `json:"before"`
		DryRun bool    `json:"dry_run"`
	}
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	req := records.PurgeRequest{DryRun: body.DryRun}
	before, err := instant("/before", body.Before)
	if err != nil {
		return answer{}, err
	}
	if before != nil {
		req.Before = *before
	}
	result, err := c.api.cfg.Records.Purge(c.ctx(), p, req)
	return ok(result), err
}

// toolCallsData is a page of tool calls. NextBelow is the sequence to send as below for the next page; absent on the last.
type toolCallsData struct {
	ToolCalls []audit.ToolCall `json:"tool_calls"`
	NextBelow int64            `json:"next_below,omitempty"`
}

func listToolCalls(c *call, p sallyport.Principal) (answer, error) {
	filter := audit.CallFilter{
		Tool:        c.query.text("tool"),
		PrincipalID: sallyport.PrincipalID(c.query.text("principal_id")),
		Code:        sallyport.Code(c.query.text("code")),
		ExecutionID: sallyport.ExecutionID(c.query.text("execution_id")),
		Since:       c.query.instant("since"),
		Until:       c.query.instant("until"),
		Below:       c.query.integer("below", 1, math.MaxInt64),
		Limit:       int(c.query.integer("limit", 1, mostEntries)),
	}
	if err := c.query.err; err != nil {
		return answer{}, err
	}
	if filter.Limit == 0 {
		filter.Limit = entriesByDefault
	}
	calls, err := c.api.cfg.Audit.ToolCalls(c.ctx(), p, filter)
	if err != nil {
		return answer{}, err
	}
	data := toolCallsData{ToolCalls: list(calls)}
	if n := len(calls); n >= filter.Limit {
		data.NextBelow = calls[n-1].Sequence
	}
	return ok(data), nil
}

// downloadBackup streams the backup of the whole installation, to whoever owns the data folder.
func downloadBackup(c *call, p sallyport.Principal) (answer, error) {
	const op = "httpapi.backup"
	keys := c.query.boolean("keys")
	if err := c.query.err; err != nil {
		return answer{}, err
	}
	if err := p.Require(op, sallyport.ScopeAdmin); err != nil {
		return answer{}, err
	}
	if c.api.cfg.Backup == nil {
		return answer{}, sallyport.Errorf(op, sallyport.CodeAccessDenied,
			"a backup holds every tenant and is given at the data folder's own socket only: run sallyport backup on the server's machine, with --data")
	}
	backup, err := c.api.cfg.Backup(c.ctx(), keys)
	if err != nil {
		return answer{}, err
	}
	name := "sallyport-" + c.now().UTC().Format(time.DateOnly) + ".backup"
	return answer{stream: &stream{name: name, mediaType: backupMedia, write: backup}}, nil
}

const backupMedia = "application/vnd.sallyport.backup"
