package cli

import (
	"strings"

	"github.com/sallyport-dev/sallyport/internal/config"
)

// globals are the flags of every command.
type globals struct {
	Help   helpFlag `help:"Show help." short:"h"`
	Data   string   `help:"Work on this data folder (default: SALLYPORT_DATA, else the user's data home)." placeholder:"DIR"`
	URL    string   `help:"Work on this server (default: SALLYPORT_URL); the key comes from SALLYPORT_KEY." name:"url" placeholder:"URL"`
	Tenant string   `help:"Act in this tenant, as the operator of the data folder (default: the tenant default)." placeholder:"TENANT"`
	JSON   bool     `help:"Print one JSON document and nothing else on standard output." name:"json"`
	Config string   `help:"Read settings from this server.yaml (default: SALLYPORT_CONFIG)." placeholder:"FILE"`
	Set    []string `help:"Set one setting of docs/config.md; may be repeated." placeholder:"KEY=VALUE" sep:"none"`
}

// flags returns the settings that the global flags name.
func (g *globals) flags() ([]config.Flag, error) {
	var flags []config.Flag
	for _, text := range g.Set {
		key, value, found := strings.Cut(text, "=")
		if !found {
			return nil, badUsage("--set wants KEY=VALUE, got " + text)
		}
		flags = append(flags, config.Flag{Key: key, Value: value, Name: "--set " + key})
	}
	if g.Data != "" {
		flags = append(flags, config.Flag{Key: "data", Value: g.Data, Name: "--data"})
	}
	return flags, nil
}

// commands is the one list. Each command is a file cmd_<name>.go.
type commands struct {
	globals

	Demo   demoCommand   `cmd:"" help:"Show the whole story on example skills: import, grant, run in the sandbox, audit."`
	Serve  serveCommand  `cmd:"" help:"Serve HTTP and MCP."`
	MCP    mcpCommand    `cmd:"" help:"Serve MCP on standard input and output." name:"mcp"`
	Doctor doctorCommand `cmd:"" help:"Say what this machine can enforce, and how to mend what it cannot."`

	Runner    runnerCommand    `cmd:"" help:"Take approved runs from servers and carry them out on this machine."`
	Runtime   runtimeCommands  `cmd:"" help:"List, unpack, verify and remove the runtimes of this machine."`
	Executors executorsCommand `cmd:"" help:"List the kinds of executor, what each provides, and its health."`

	Validate   validateCommand   `cmd:"" help:"Say what is wrong with skills on this machine."`
	Import     importCommand     `cmd:"" help:"Import skills from folders."`
	Export     exportCommand     `cmd:"" help:"Write a skill's revision to an archive."`
	Skill      skillCommands     `cmd:"" help:"List, show, publish and archive skills."`
	Grant      grantCommands     `cmd:"" help:"Issue, list and revoke grants."`
	Run        runCommand        `cmd:"" help:"Run a script of a skill."`
	Approve    approveCommand    `cmd:"" help:"Say yes or no to a run that wants a person's confirmation."`
	Explain    explainCommand    `cmd:"" help:"Say whether a script would run, and what would open the gate that refuses."`
	Execution  executionCommands `cmd:"" help:"Look at what ran."`
	Audit      auditCommands     `cmd:"" help:"Read and verify the audit trail."`
	Tenant     tenantCommands    `cmd:"" help:"Make, list and disable tenants."`
	Team       teamCommands      `cmd:"" help:"Look after the teams of the tenant and their members."`
	Role       roleCommands      `cmd:"" help:"Look after the roles of the tenant."`
	Principal  principalCommands `cmd:"" help:"Look after the principals of the tenant and their roles."`
	Policy     policyCommands    `cmd:"" help:"Show and change what the tenant narrows for itself."`
	Key        keyCommands       `cmd:"" help:"Create, list and revoke API keys."`
	Secret     secretCommands    `cmd:"" help:"Set, list and remove secrets, and replace the key that encrypts them."`
	Bench      benchCommand      `cmd:"" help:"Measure what a governed run costs beside a plain process."`
	Backup     backupCommands    `cmd:"" help:"Write or check a backup of the data folder."`
	Restore    restoreCommand    `cmd:"" help:"Make a data folder of a backup."`
	Completion completionCommand `cmd:"" help:"Print the completion script of a shell."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}
