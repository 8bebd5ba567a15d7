package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/sallyport-dev/sallyport"
)

// A setting is one row of the table: all there is to know about one setting. One of text, list, pairs and tree is set, or text
// beside one of the others.
type setting struct {
	key   string // dotted, as in server.yaml
	form  string // what a value looks like
	zero  string // the default, for readers
	doc   string
	text  func(s *Settings, value string) error
	list  func(s *Settings, values []string) error
	pairs func(s *Settings, values map[string]string) error
	tree  func(s *Settings, node *yaml.Node) error
}

// env is the variable that sets the row.
func (r setting) env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(r.key, ".", "_"))
}

// table lists every setting, in the order of the reference.
func table() []setting {
	return []setting{
		{
			key: "data", form: "folder", zero: "$XDG_DATA_HOME/sallyport, else ~/.local/share/sallyport",
			doc:  "Holds the database, the keys, the owner's lock and socket. Made with mode 0700 when absent.",
			text: func(s *Settings, v string) error { return folder(&s.DataDir, v) },
		},
		{
			key: "state", form: "folder", zero: "chosen by the executor",
			doc:  "Holds revisions unpacked for the sandbox, read-only. Every parent must be open to traversal.",
			text: func(s *Settings, v string) error { return folder(&s.StateDir, v) },
		},
		{
			key: "listen", form: "host:port", zero: DefaultListen,
			doc:  "The address to serve HTTP and MCP on. Port 0 picks a free one.",
			text: func(s *Settings, v string) error { s.Listen = v; return nil },
		},
		{
			key: "tls.cert", form: "file", zero: "none",
			doc:  "The PEM certificate chain to serve TLS with.",
			text: func(s *Settings, v string) error { s.TLSCert = v; return nil },
		},
		{
			key: "tls.key", form: "file", zero: "none",
			doc:  "The PEM private key that goes with tls.cert.",
			text: func(s *Settings, v string) error { s.TLSKey = v; return nil },
		},
		{
			key: "public_url", form: "URL", zero: "none",
			doc: "The name by which clients reach this server, without a path. Access tokens are made for it and for its /mcp. " +
				"Needed with oidc.",
			text: func(s *Settings, v string) error { s.PublicURL = v; return nil },
		},
		{
			key: "oidc", form: "list of issuers", zero: "none",
			doc: "Authorization servers whose access tokens are accepted beside API keys, and what their claims mean " +
				"(identity.md). In a variable the list is written as JSON.",
			text: func(s *Settings, v string) error { return treeText(s, v, issuers) },
			tree: issuers,
		},
		{
			key: "profile", form: "dev or production", zero: "dev when listen is loopback and public_url is none or loopback too, else production",
			doc: "A set of defaults. dev: scripts on, the interpreters found on the host, and a principal without a key " +
				"for callers on this machine, who may read, write and run but not grant. production: scripts off, no " +
				"interpreter, a key for everybody, and no start with a risk that is not accepted by name (production.md).",
			text: func(s *Settings, v string) error { return oneOf(&s.Profile, v, ProfileDev, ProfileProduction) },
		},
		{
			key: "accept", form: "list of risks", zero: "none",
			doc:  riskDoc(),
			list: func(s *Settings, v []string) error { return acceptRisks(&s.Accept, v) },
		},
		{
			key: "scripts_enabled", form: "true or false", zero: "by the profile",
			doc:  "Whether scripts may run at all. false refuses every run with FEATURE_DISABLED.",
			text: func(s *Settings, v string) error { return boolean(&s.Scripts, v) },
		},
		{
			key: "isolation", form: "enforce or degrade", zero: string(IsolationEnforce),
			doc: "enforce: nothing runs unless every isolation layer that the executor knows is active. degrade: run " +
				"with the layers that the host gives; every result lists the missing ones.",
			text: func(s *Settings, v string) error { return oneOf(&s.Isolation, v, IsolationEnforce, IsolationDegrade) },
		},
		{
			key: "interpreters", form: "map of extension to program or runtime, or auto", zero: "by the profile",
			doc: "The allow-list. A script whose extension is not in it never runs. The word auto stands for " +
				"every interpreter found on the host: python3, bash and node. The name of a runtime, such as python-3.12, may stand " +
				"for a program; with the executor remote it may be one that only the runners know.",
			text:  func(s *Settings, v string) error { return autoInterpreters(&s.Interpreters, v) },
			pairs: func(s *Settings, v map[string]string) error { return interpreters(&s.Interpreters, v) },
		},
		{
			key: "runtimes", form: "map of name to runtime", zero: "none",
			doc: "What the names of runtimes stand for (runtimes.md): `{program: /usr/bin/python3.12}` is a program of the host; with " +
				"`root: /srv/runtimes/ds` it is one in that folder, which takes the place of the host's system; with " +
				"`image: registry.example.org/team/ds@sha256:...` it is one in that image, and a path of a tarball or an OCI layout may " +
				"stand for the reference. Scripts of the runtime's extensions may ask for it by name; `extensions: [py]` says which " +
				"they are where the program's name does not. In a variable the map is written as JSON.",
			text: func(s *Settings, v string) error { return treeText(s, v, runtimeTree) },
			tree: runtimeTree,
		},
		{
			key: "executor", form: "kind", zero: "bubblewrap",
			doc: "What carries out scripts: bubblewrap on this host, container in an engine's containers, remote on runners, or, for development alone, unsafelocal " +
				"without isolation. See `sallyport executors`.",
			text: func(s *Settings, v string) error { return word(&s.Executor, v) },
		},
		{
			key: "required_executor", form: "kind", zero: "none",
			doc: "Stops the start when any other executor would serve, so that a forgotten setting does not quietly run " +
				"scripts on this host.",
			text: func(s *Settings, v string) error { return word(&s.RequiredExecutor, v) },
		},
		{
			key: "container.socket", form: "file", zero: "none",
			doc: "The UNIX socket of the engine, for the executor container: /run/podman/podman.sock, /var/run/docker.sock. Whoever can " +
				"open the socket of an engine that runs as root is root there.",
			text: func(s *Settings, v string) error {
				return folder(&s.Container.Socket, strings.TrimPrefix(v, "unix://"))
			},
		},
		{
			key: "container.images", form: "map of runtime to image", zero: "none",
			doc: "The image for each runtime, for the executor container: `{python: docker.io/library/python@sha256:..., bash: ..., node: " +
				"...}`. It must be on the engine already; nothing is ever pulled.",
			text: func(_ *Settings, v string) error {
				return errors.New("want a map of runtime to image, got " + quote(v))
			},
			pairs: func(s *Settings, v map[string]string) error { return images(&s.Container.Images, v) },
		},
		{
			key: "container.require_digest", form: "true or false", zero: "false",
			doc:  "Whether an image must be named by its digest (name@sha256:...) or id, so that nobody can put another behind its name.",
			text: func(s *Settings, v string) error { return boolean(&s.Container.RequireDigest, v) },
		},
		{
			key: "remote.runners", form: "list of URLs", zero: "none",
			doc: "The runners, for the executor remote: https://host:port each, or http on loopback. The least loaded one that is " +
				"healthy gets a run; none is asked again once a run may have begun.",
			list: func(s *Settings, v []string) error { return urls(&s.Remote.Runners, v) },
		},
		{
			key: "remote.key_file", form: "file", zero: "none",
			doc:  "Holds the bearer key that the runners ask for.",
			text: func(s *Settings, v string) error { return folder(&s.Remote.KeyFile, v) },
		},
		{
			key: "remote.ca", form: "file", zero: "those of the system",
			doc:  "The PEM certificates of the authorities that the runners' certificates must come from.",
			text: func(s *Settings, v string) error { return folder(&s.Remote.CA, v) },
		},
		{
			key: "remote.cert", form: "file", zero: "none",
			doc:  "The PEM certificate chain to show to the runners.",
			text: func(s *Settings, v string) error { return folder(&s.Remote.Cert, v) },
		},
		{
			key: "remote.key", form: "file", zero: "none",
			doc:  "The PEM private key that goes with remote.cert.",
			text: func(s *Settings, v string) error { return folder(&s.Remote.Key, v) },
		},
		{
			key: "remote.provides", form: "list of layers and features", zero: "none",
			doc: "What a runner provides that declares nothing about itself, because it knows POST /runs only: layers that it " +
				"enforces, such as network_isolation, and features, such as argv. A runner that declares something is believed.",
			list: func(s *Settings, v []string) error { return provides(&s.Remote, v) },
		},
		{
			key: "runner.listen", form: "host:port", zero: DefaultRunnerListen,
			doc:  "The address that `sallyport runner` takes work on. Beyond loopback it needs runner.cert and runner.key.",
			text: func(s *Settings, v string) error { s.Runner.Listen = v; return nil },
		},
		{
			key: "runner.key_file", form: "file", zero: "none",
			doc:  "Holds the bearer keys, one a line, that servers may send work with. Without it runner.client_ca is needed.",
			text: func(s *Settings, v string) error { return folder(&s.Runner.KeyFile, v) },
		},
		{
			key: "runner.cert", form: "file", zero: "none",
			doc:  "The PEM certificate chain that the runner serves TLS with.",
			text: func(s *Settings, v string) error { return folder(&s.Runner.Cert, v) },
		},
		{
			key: "runner.key", form: "file", zero: "none",
			doc:  "The PEM private key that goes with runner.cert.",
			text: func(s *Settings, v string) error { return folder(&s.Runner.Key, v) },
		},
		{
			key: "runner.client_ca", form: "file", zero: "none",
			doc:  "The PEM certificates of the authorities whose certificates a server must show.",
			text: func(s *Settings, v string) error { return folder(&s.Runner.ClientCA, v) },
		},
		{
			key: "runner.slots", form: "count", zero: "the larger of 8 and 4 x CPUs",
			doc:  "Runs at the same time on the runner.",
			text: func(s *Settings, v string) error { return count(&s.Runner.Slots, v) },
		},
		{
			key: "runner.cache", form: "size", zero: "256MiB",
			doc:  "The revisions that the runner keeps in memory.",
			text: func(s *Settings, v string) error { return size(&s.Runner.CacheBytes, v) },
		},
		{
			key: "runner.runtimes", form: "map of name to program", zero: "none",
			doc: "What the names of runtimes that servers ask for mean on this machine, besides the rows of interpreters. A " +
				"server says `interpreters: {py: python-3.12}` and the runner says what that is.",
			text:  func(_ *Settings, v string) error { return errors.New("want a map of name to program, got " + quote(v)) },
			pairs: func(s *Settings, v map[string]string) error { return runtimes(&s.Runner.Runtimes, v) },
		},
		{
			key: "bubblewrap", form: "file", zero: "bwrap on the system's path",
			doc:  "The bubblewrap program.",
			text: func(s *Settings, v string) error { return program(&s.Bubblewrap, v) },
		},
		{
			key: "sandbox_profile", form: "default or strict", zero: string(SandboxProfileDefault),
			doc: "The system calls that bubblewrap denies to scripts. strict denies in addition what two runs could signal " +
				"each other with through files of the host: flock, leases, watching files, the state of the page cache, " +
				"netlink. Every result names the profile.",
			text: func(s *Settings, v string) error {
				return oneOf(&s.SandboxProfile, v, SandboxProfileDefault, SandboxProfileStrict)
			},
		},
		{
			key: "limits.timeout", form: "duration", zero: sallyport.DefaultTimeout.String(),
			doc:  "Wall clock of a run whose caller names none.",
			text: func(s *Settings, v string) error { return duration(&s.Limits.Timeout, v) },
		},
		{
			key: "limits.max_timeout", form: "duration", zero: sallyport.MaxTimeout.String(),
			doc:  "The most a caller may ask for.",
			text: func(s *Settings, v string) error { return duration(&s.MaxTimeout, v) },
		},
		{
			key: "limits.grace", form: "duration", zero: sallyport.DefaultGrace.String(),
			doc:  "How long after the timeout the server still waits for the executor.",
			text: func(s *Settings, v string) error { return duration(&s.Grace, v) },
		},
		{
			key: "limits.memory", form: "size", zero: sizeText(sallyport.DefaultMemoryBytes),
			doc:  "Memory of a whole run.",
			text: func(s *Settings, v string) error { return size(&s.Limits.MemoryBytes, v) },
		},
		{
			key: "limits.processes", form: "count", zero: "128",
			doc:  "Processes and threads of a run.",
			text: func(s *Settings, v string) error { return count(&s.Limits.Processes, v) },
		},
		{
			key: "limits.cpu_millis", form: "count", zero: "1000",
			doc:  "Thousandths of one CPU.",
			text: func(s *Settings, v string) error { return count(&s.Limits.CPUMillis, v) },
		},
		{
			key: "limits.cpu_time", form: "duration",
			doc: "Processor time of a whole run, all of its processes together, at least 100ms. Unset means no budget: then only the wall clock " +
				"and the share bound it. A run that uses it up ends as a timeout with the limit cpu.",
			text: func(s *Settings, v string) error { return duration(&s.Limits.CPUTime, v) },
		},
		{
			key: "limits.scratch", form: "size", zero: sizeText(sallyport.DefaultScratchBytes),
			doc:  "Each writable file system of a run.",
			text: func(s *Settings, v string) error { return size(&s.Limits.ScratchBytes, v) },
		},
		{
			key: "limits.output", form: "size", zero: sizeText(sallyport.DefaultOutputBytes),
			doc:  "Each of standard output and standard error; the rest is cut and said to be.",
			text: func(s *Settings, v string) error { return size(&s.Limits.OutputBytes, v) },
		},
		{
			key: "limits.artifacts", form: "size", zero: sizeText(sallyport.DefaultArtifactBytes),
			doc:  "All artifacts of a run together.",
			text: func(s *Settings, v string) error { return size(&s.Limits.ArtifactBytes, v) },
		},
		{
			key: "limits.artifact_files", form: "count", zero: "32",
			doc:  "The number of artifacts of a run.",
			text: func(s *Settings, v string) error { return count(&s.Limits.ArtifactFiles, v) },
		},
		{
			key: "limits.arguments", form: "size", zero: sizeText(sallyport.DefaultArgumentBytes),
			doc:  "The arguments of a call.",
			text: func(s *Settings, v string) error { return size(&s.MaxArguments, v) },
		},
		{
			key: "limits.script", form: "size", zero: sizeText(sallyport.DefaultScriptBytes),
			doc:  "One script.",
			text: func(s *Settings, v string) error { return size(&s.MaxScript, v) },
		},
		{
			key: "limits.body", form: "size", zero: sizeText(sallyport.DefaultBodyBytes),
			doc:  "A request's body, imports aside.",
			text: func(s *Settings, v string) error { return size(&s.MaxBody, v) },
		},
		{
			key: "limits.import", form: "size", zero: "1GiB",
			doc:  "An uploaded tree of skills.",
			text: func(s *Settings, v string) error { return size(&s.MaxImport, v) },
		},
		{
			key: "slots.total", form: "count", zero: "the larger of 8 and 4 x CPUs",
			doc:  "Runs at the same time.",
			text: func(s *Settings, v string) error { return count(&s.SlotsTotal, v) },
		},
		{
			key: "slots.per_tenant", form: "count", zero: "half of slots.total, at least 2",
			doc:  "Runs of one tenant at the same time.",
			text: func(s *Settings, v string) error { return count(&s.SlotsPerTenant, v) },
		},
		{
			key: "queue.length", form: "count", zero: "64",
			doc:  "Calls that may wait for a slot.",
			text: func(s *Settings, v string) error { return count(&s.QueueLength, v) },
		},
		{
			key: "queue.wait", form: "duration", zero: sallyport.DefaultQueueWait.String(),
			doc:  "How long a call waits for a slot.",
			text: func(s *Settings, v string) error { return duration(&s.QueueWait, v) },
		},
		{
			key: "quotas.tenant.requests_per_second", form: "count", zero: "no bound",
			doc:  "Requests over the network by one tenant in a second. What is over it is refused with RATE_LIMITED, 429 and Retry-After.",
			text: func(s *Settings, v string) error { return count(&s.Quotas.Tenant.RequestsPerSecond, v) },
		},
		{
			key: "quotas.tenant.runs_per_minute", form: "count", zero: "no bound",
			doc:  "Runs of one tenant in a minute.",
			text: func(s *Settings, v string) error { return count(&s.Quotas.Tenant.RunsPerMinute, v) },
		},
		{
			key: "quotas.tenant.runs_per_day", form: "count", zero: "no bound",
			doc:  "Runs of one tenant in a day, counted since the server started.",
			text: func(s *Settings, v string) error { return count(&s.Quotas.Tenant.RunsPerDay, v) },
		},
		{
			key: "quotas.tenant.cpu_seconds_per_day", form: "count", zero: "no bound",
			doc:  "CPU time of the runs of one tenant in a day, counted since the server started. A run begins while anything is left.",
			text: func(s *Settings, v string) error { return count(&s.Quotas.Tenant.CPUSecondsPerDay, v) },
		},
		{
			key: "quotas.principal.requests_per_second", form: "count", zero: "no bound",
			doc:  "Requests over the network by one principal in a second. What is over it is refused with RATE_LIMITED, 429 and Retry-After.",
			text: func(s *Settings, v string) error { return count(&s.Quotas.Principal.RequestsPerSecond, v) },
		},
		{
			key: "quotas.principal.runs_per_minute", form: "count", zero: "no bound",
			doc:  "Runs of one principal in a minute.",
			text: func(s *Settings, v string) error { return count(&s.Quotas.Principal.RunsPerMinute, v) },
		},
		{
			key: "quotas.principal.runs_per_day", form: "count", zero: "no bound",
			doc:  "Runs of one principal in a day, counted since the server started.",
			text: func(s *Settings, v string) error { return count(&s.Quotas.Principal.RunsPerDay, v) },
		},
		{
			key: "quotas.principal.cpu_seconds_per_day", form: "count", zero: "no bound",
			doc:  "CPU time of the runs of one principal in a day, counted since the server started. A run begins while anything is left.",
			text: func(s *Settings, v string) error { return count(&s.Quotas.Principal.CPUSecondsPerDay, v) },
		},
		{
			key: "quotas.principal.concurrent_runs", form: "count", zero: "no bound",
			doc:  "Runs of one principal at the same time, waiting ones too. For a tenant there is slots.per_tenant.",
			text: func(s *Settings, v string) error { return count(&s.Quotas.Principal.ConcurrentRuns, v) },
		},
		{
			key: "quotas.address.failures_per_minute", form: "count, or none", zero: "30",
			doc: "Requests of one remote address (of IPv6, of one /64) in a minute that showed no valid credential. What is over it is refused with " +
				"RATE_LIMITED before anything is looked up; a credential that was good a moment ago is still let in.",
			text: func(s *Settings, v string) error { return countOrNone(&s.Quotas.Address.FailuresPerMinute, v) },
		},
		{
			key: "quotas.address.public_per_second", form: "count, or none", zero: "50",
			doc:  "Requests of one remote address in a second for what is served to anybody, such as /healthz, and for what there is not.",
			text: func(s *Settings, v string) error { return countOrNone(&s.Quotas.Address.PublicPerSecond, v) },
		},
		{
			key: "quotas.failures", form: "count, or none", zero: "20 in the profile production, none in dev",
			doc: "How often the same script with the same content may fail in a row for one principal before its next run is refused: " +
				"an agent that calls a broken script again and again is told to mend it.",
			text: func(s *Settings, v string) error { return countOrNone(&s.Quotas.Failures, v) },
		},
		{
			key: "quotas.failure_window", form: "duration", zero: "10m0s",
			doc:  "How long after its last failure a script that was refused by quotas.failures may be called again.",
			text: func(s *Settings, v string) error { return duration(&s.Quotas.FailureWindow, v) },
		},
		{
			key: "confirm.all", form: "true or false", zero: "false",
			doc:  "Whether every run wants a person's yes first (confirm.md). A tenant's policy and a script can want it by themselves.",
			text: func(s *Settings, v string) error { return boolean(&s.Confirm, v) },
		},
		{
			key: "confirm.self", form: "true or false", zero: "false",
			doc:  "Whether a principal with grants:write may confirm the runs that it asked for itself.",
			text: func(s *Settings, v string) error { return boolean(&s.ConfirmSelf, v) },
		},
		{
			key: "confirm.in_client", form: "true or false", zero: "true",
			doc:  "Whether an MCP client that can ask its user may do so, and its word is taken for the answer.",
			text: func(s *Settings, v string) error { return boolean(&s.ConfirmInClient, v) },
		},
		{
			key: "publish_requires_clean", form: "true or false", zero: "false",
			doc: "Whether only revisions are published in which the static rules find nothing but notes (findings.md). A reviewer " +
				"with grants:write can override it with a reason, which is audited.",
			text: func(s *Settings, v string) error { return boolean(&s.PublishRequiresClean, v) },
		},
		{
			key: "grants", form: "reviewer or publisher", zero: "reviewer",
			doc: "Who grants. reviewer: somebody reads a revision and grants its digest. publisher: besides, what a principal publishes " +
				"who carries memory:write and grants:write both is granted with it, and audited as such; not in a tenant whose policy " +
				"says separate_duties.",
			text: func(s *Settings, v string) error { return oneOf(&s.Grants, v, "reviewer", "publisher") },
		},
		{
			key: "grant_notice", form: "duration", zero: "168h0m0s",
			doc:  "How long before its end a grant is announced: in lists, in the log, in a metric, and once in the audit trail as grant.expiring.",
			text: func(s *Settings, v string) error { return duration(&s.GrantNotice, v) },
		},
		{
			key: "finding_exclusions", form: "list of path patterns", zero: "none",
			doc:  "Paths inside skills whose findings are set aside and counted: a path, a pattern such as tests/*.py, or a folder with a slash at its end.",
			list: func(s *Settings, v []string) error { s.FindingExclusions = v; return nil },
		},
		{
			key: "url_import", form: "true or false", zero: "false",
			doc: "Whether skills can be imported from https URLs of the public internet, git repositories among them (importing.md). Every address " +
				"is checked when it is dialled, redirects included; proxies of the environment and logins are not used.",
			text: func(s *Settings, v string) error { return boolean(&s.URLImport, v) },
		},
		{
			key: "url_import_private", form: "true or false", zero: "false",
			doc:  "Whether url_import reaches loopback and private networks, too. Link-local addresses, such as a cloud's metadata, stay out of reach.",
			text: func(s *Settings, v string) error { return boolean(&s.URLImportPrivate, v) },
		},
		{
			key: "audit.retention_days", form: "count", zero: "kept for ever",
			doc: "Days after which entries of the audit trail are removed, up to a signed checkpoint that stays, so that the trail can still " +
				"be verified (audit.md).",
			text: func(s *Settings, v string) error { return count(&s.AuditRetentionDays, v) },
		},
		{
			key: "audit.archive", form: "folder", zero: "none",
			doc:  "Where entries are written to, as JSON lines that can be verified, before audit.retention_days removes them.",
			text: func(s *Settings, v string) error { return folder(&s.AuditArchive, v) },
		},
		{
			key: "secrets.key_file", form: "file", zero: "secrets.key in the data folder",
			doc: "Holds the key that encrypts the secrets of tenants. It is made, with mode 0600, when the first secret is set. Keep a copy " +
				"apart from the data folder's: whoever has both can read the secrets, and without the file they are lost (secrets.md).",
			text: func(s *Settings, v string) error { return folder(&s.SecretKeyFile, v) },
		},
		{
			key: "secrets.mask_outputs", form: "true or false", zero: "true",
			doc: "Whether the values of the secrets that a script declares are hidden where it prints them. A tenant's policy can hide them " +
				"when this is false.",
			text: func(s *Settings, v string) error { return boolean(&s.MaskOutputs, v) },
		},
		{
			key: "retention.executions_days", form: "days, or 0", zero: "30",
			doc:  "How long an execution is kept, with its output and artifacts (records.md). 0 keeps. The audit trail keeps its entries for audit.retention_days.",
			text: func(s *Settings, v string) error { return days(&s.Retention.Executions, v) },
		},
		{
			key: "retention.artifacts_days", form: "days, or 0", zero: "7",
			doc:  "How long the content of artifacts is kept; the record keeps their names and digests. 0 keeps.",
			text: func(s *Settings, v string) error { return days(&s.Retention.Artifacts, v) },
		},
		{
			key: "retention.tool_calls_days", form: "days, or 0", zero: "30",
			doc:  "How long the records of MCP tool calls are kept. 0 keeps.",
			text: func(s *Settings, v string) error { return days(&s.Retention.ToolCalls, v) },
		},
		{
			key: "retention.drafts_days", form: "days, or 0", zero: "0",
			doc:  "How long drafts are kept that were never published and that no grant and no execution names. 0 keeps.",
			text: func(s *Settings, v string) error { return days(&s.Retention.Drafts, v) },
		},
		{
			key: "retention.drafts_keep", form: "count, or 0", zero: "5",
			doc:  "How many of the newest drafts of a skill stay, however old they are.",
			text: func(s *Settings, v string) error { return days(&s.Retention.KeepDrafts, v) },
		},
		{
			key: "retention.deleted_days", form: "days, or 0", zero: "30",
			doc:  "How long a deleted skill can be restored before it is purged. 0 keeps it until `sallyport skill delete --purge`.",
			text: func(s *Settings, v string) error { return days(&s.Retention.Deleted, v) },
		},
		{
			key: "log.level", form: "debug, info, warn or error", zero: "info",
			doc:  "The least important line that serve and mcp log, on standard error.",
			text: func(s *Settings, v string) error { return oneOf(&s.LogLevel, v, "debug", "info", "warn", "error") },
		},
		{
			key: "log.format", form: "text or json", zero: "text",
			doc:  "How a log line is written.",
			text: func(s *Settings, v string) error { return oneOf(&s.LogFormat, v, "text", "json") },
		},
	}
}

// rows returns the table by key.
func rows() map[string]setting {
	byKey := map[string]setting{}
	for _, row := range table() {
		byKey[row.key] = row
	}
	return byKey
}

// nearest returns a known key that looks like key, or "".
func nearest(key string) string {
	best, bestDistance := "", 3
	for _, candidate := range slices.Sorted(maps.Keys(rows())) {
		if d := distance(key, candidate); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance is the edit distance of two short strings.
func distance(a, b string) int {
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current := make([]int, len(b)+1)
		current[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			current[j+1] = min(previous[j+1]+1, current[j]+1, previous[j]+cost)
		}
		previous = current
	}
	return previous[len(b)]
}
