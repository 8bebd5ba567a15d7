package httpapi_test

import (
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Samples with every member set, so that the document is held against all of them.

func sampleSkill() sallyport.Skill {
	archived := now()
	return sallyport.Skill{
		ID: skillID, TenantID: "acme", TeamID: "default", OwnerID: "alice", Slug: "csv-profiler", Name: "CSV profiler",
		Description: "Profiles", PublishedRevisionID: "rev-1", LatestRevisionID: "rev-2", ArchivedAt: &archived,
		CreatedAt: now(), UpdatedAt: now(), DeletedAt: &archived,
	}
}

func sampleComponent() sallyport.Component {
	return sallyport.Component{
		ID: "c-1", Path: "scripts/profile.py", Kind: sallyport.KindScript, MediaType: "text/x-python", Size: 5, SHA256: sha, Mode: 0o755,
		Script: &sallyport.ScriptSettings{
			Runtime: "python", Input: sallyport.InputStdin, InputSchema: json.RawMessage(`{"type":"object","x":1}`),
			Argv: json.RawMessage(`"free"`), Limits: sallyport.DefaultLimits(), Secrets: []string{"TOKEN"},
		},
		Content: []byte("hello"),
	}
}

func sampleRevision() sallyport.Revision {
	published := now()
	return sallyport.Revision{
		ID: "rev-1", TenantID: "acme", SkillID: skillID, Number: 1, State: sallyport.RevisionPublished, Digest: digest,
		Frontmatter: json.RawMessage(`{"name":"csv-profiler","more":{"a":[1]}}`), Message: "first", Author: "alice",
		CreatedAt: now(), PublishedAt: &published, Components: []sallyport.Component{sampleComponent()},
	}
}

func sampleExecution(status sallyport.Status) sallyport.Execution {
	expired := now()
	started, finished, exit, n := now(), now().Add(time.Second), 3, int64(7)
	e := sallyport.Execution{
		ID: "e-1", TenantID: "acme", PrincipalID: "alice", SkillID: skillID, Slug: "csv-profiler", RevisionID: "rev-1",
		RevisionDigest: digest, ScriptPath: "scripts/profile.py", Runtime: "python", Status: status, Stdout: "out <&>", Stderr: "err",
		StdoutTruncated: true, StdoutBytes: 7, StderrBytes: 3, EncodingNotes: []string{"stdout: invalid UTF-8 replaced"},
		OutputData: json.RawMessage(`{"n":12345678901234567890}`), OutputDataNote: "note",
		Artifacts:     []sallyport.Artifact{{Path: "a.txt", Size: 5, SHA256: sha, MediaType: "text/plain", URI: "/v1/executions/e-1/artifacts/a.txt", ExpiredAt: &expired}},
		ArtifactsLost: true, ArtifactNotes: []string{"x: a link"}, DurationMS: 1000, QueueMS: 2, MemoryPeakBytes: &n, CPUTimeMS: &n, OOMKills: 1,
		ProcessLimitHits: 2,
		Isolation: sallyport.Isolation{
			Executor: "bubblewrap", Layers: []sallyport.Layer{sallyport.LayerSeccomp}, Missing: []sallyport.Layer{sallyport.LayerLandlock}, Warm: true,
			Plan: "user_namespace", Profile: "strict", Notes: []string{"affinity advisory"},
		},
		Limits: sallyport.DefaultLimits(), GrantID: "g-1", TraceID: "t", CreatedAt: now(), StartedAt: &started, FinishedAt: &finished,
	}
	if status == sallyport.StatusError {
		e.ExitCode, e.ErrorKind, e.ErrorMessage = &exit, sallyport.CodeScriptExecutionError, "the script exited with 3"
		e.Signal, e.SignalName, e.Limit = 9, "SIGKILL", sallyport.LimitMemory
	}
	return e
}

func sampleGrant() sallyport.Grant {
	expires := now().Add(time.Hour)
	return sallyport.Grant{
		ID: "g-1", TenantID: "acme", SkillID: skillID, Slug: "csv-profiler", ScriptPath: "scripts/profile.py", Pin: digest,
		RevisionID: "rev-1", IssuedBy: "bob", IssuedAt: now(), ExpiresAt: &expires,
	}
}

func sampleEntry(sequence int64) sallyport.Entry {
	return sallyport.Entry{
		Sequence: sequence, TenantID: "acme", At: now(), Actor: "alice", Action: sallyport.ActionScriptRun, Entity: "csv-profiler/x",
		ExecutionID: "e-1", Detail: json.RawMessage(`{"input_args":{"a":1}}`), PreviousHash: "", Hash: digest,
	}
}

func sampleKey() sallyport.Key {
	t := now()
	return sallyport.Key{
		ID: "k-1", TenantID: "acme", PrincipalID: "ci", Name: "ci", Prefix: "spk_abc", Scopes: []sallyport.Scope{sallyport.ScopeMemoryRead},
		Roles: []sallyport.RoleName{"reader"}, Teams: []sallyport.TeamID{"default"}, CreatedBy: "alice", CreatedAt: t, ExpiresAt: &t, LastUsedAt: &t, RevokedAt: &t,
	}
}
