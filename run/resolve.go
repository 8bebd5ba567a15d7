package run

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/canonical"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

// resolve is step 0: who asks, and for which exact bytes.
func (s *Service) resolve(ctx context.Context, p sallyport.Principal, req Request) (*sallyport.Candidate, error) {
	const op = "run.resolve"
	candidate := &sallyport.Candidate{Principal: p, Argv: req.Argv, Files: req.Files}
	if err := p.Require(op, sallyport.ScopeMemoryWrite); err != nil {
		return candidate, err
	}
	if err := s.checkRequest(req); err != nil {
		return candidate, err
	}
	var err error
	if candidate.Args, candidate.ArgsGiven, err = arguments(req.Args); err != nil {
		return candidate, err
	}
	if candidate.Skill, err = s.cfg.Skills.Resolve(ctx, p, req.Ref); err != nil {
		return candidate, err
	}
	if candidate.Skill.Archived() {
		return candidate, sallyport.Errorf(op, sallyport.CodeSkillArchived, "the skill %s is archived; restore it to run its scripts", candidate.Skill.Slug)
	}
	if candidate.Revision, err = s.cfg.Skills.ResolveRevision(ctx, p, candidate.Skill, req.RevisionID); err != nil {
		return candidate, err
	}
	if candidate.Script, err = findScript(candidate.Revision, req.ScriptPath); err != nil {
		return candidate, err
	}
	// The digest is computed from the bytes in hand, which are the bytes that will be handed over: what a gate checks is
	// what runs, whatever the store does in between.
	if candidate.Digest, err = canonical.RevisionDigest(candidate.Revision.Components); err != nil {
		return candidate, &sallyport.Error{Op: op, Code: sallyport.CodeInternal, Err: err}
	}
	if candidate.Grants, err = s.cfg.Grants.Grants(ctx, p.TenantID, candidate.Skill.ID); err != nil {
		return candidate, err
	}
	if s.cfg.Policies != nil {
		if candidate.Policy, err = s.cfg.Policies.Policy(ctx, p.TenantID); err != nil {
			return candidate, err
		}
	}
	if err = s.confirmed(ctx, candidate, req); err != nil {
		return candidate, err
	}
	candidate.Limits = s.limits(req, candidate.Script).Narrow(candidate.Policy.Limits)
	return candidate, nil
}

// checkRequest judges what needs no look-up.
func (s *Service) checkRequest(req Request) error {
	const op = "run.request"
	invalid := func(format string, args ...any) error {
		return sallyport.Errorf(op, sallyport.CodeInvalidArgument, format, args...)
	}
	if req.Timeout != 0 && (req.Timeout < sallyport.MinTimeout || req.Timeout > s.cfg.MaxTimeout) {
		return invalid("timeout_seconds must be between %d and %d", int(sallyport.MinTimeout.Seconds()), int(s.cfg.MaxTimeout.Seconds()))
	}
	switch path := req.ScriptPath; {
	case path == "":
		return invalid("script_path is required")
	case strings.HasPrefix(path, "/"), strings.Contains(path, `\`), strings.ContainsFunc(path, unicode.IsControl), hasDotDot(path):
		return sallyport.Errorf(op, sallyport.CodeUnsafePath, "script_path must be a plain path inside the skill")
	}
	for i, arg := range req.Argv {
		if strings.Contains(arg, "\x00") {
			return invalid("argv[%d] contains NUL", i)
		}
	}
	seen := map[string]bool{}
	for _, file := range req.Files {
		if err := sallyport.CheckPath(file.Name); err != nil {
			return sallyport.Errorf(op, sallyport.CodeUnsafePath, "the name of an input file is not plain: %s", sallyport.Public(err).Message)
		}
		if seen[file.Name] {
			return invalid("the input file %s is sent twice", file.Name)
		}
		seen[file.Name] = true
	}
	for name := range seen {
		for parent := name; ; {
			cut := strings.LastIndexByte(parent, '/')
			if cut < 0 {
				break
			}
			if parent = parent[:cut]; seen[parent] {
				return invalid("the input file %s is also a folder of another", parent)
			}
		}
	}
	return nil
}

func hasDotDot(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == ".." {
			return true
		}
	}
	return false
}

// arguments checks that args is one JSON object and keeps its bytes as they came.
func arguments(args json.RawMessage) (kept json.RawMessage, given bool, err error) {
	trimmed := bytes.TrimSpace(args)
	if len(trimmed) == 0 {
		return json.RawMessage("{}"), false, nil
	}
	if err := strictjson.Check(args); err != nil {
		return nil, true, sallyport.Errorf("run.arguments", sallyport.CodeInvalidArgument, "input_args: %s", sallyport.Public(err).Message)
	}
	if trimmed[0] != '{' {
		return nil, true, sallyport.Errorf("run.arguments", sallyport.CodeInvalidArgument, "input_args must be a JSON object")
	}
	return args, true, nil
}

// findScript looks for a path first and for a component id second.
func findScript(revision sallyport.Revision, pathOrID string) (sallyport.Component, error) {
	found, ok := revision.Component(pathOrID)
	if !ok {
		for _, c := range revision.Components {
			if string(c.ID) == pathOrID {
				found, ok = c, true
			}
		}
	}
	if ok && found.Kind == sallyport.KindScript {
		return found, nil
	}
	scripts := []string{}
	for _, c := range revision.Components {
		if c.Kind == sallyport.KindScript {
			scripts = append(scripts, c.Path)
		}
	}
	e := &sallyport.Error{Op: "run.script", Details: map[string]any{"scripts": scripts}}
	which := "it has no scripts"
	if len(scripts) > 0 {
		which = "its scripts are " + strings.Join(scripts, ", ")
	}
	if ok {
		e.Code, e.Message = sallyport.CodeInvalidComponentType, found.Path+" is a "+string(found.Kind)+", not a script; "+which
	} else {
		e.Code, e.Message = sallyport.CodeScriptNotFound, "the revision has no such script; "+which
	}
	return sallyport.Component{}, e
}

// limits are the smallest of request, script and installation.
func (s *Service) limits(req Request, script sallyport.Component) sallyport.Limits {
	installation := s.cfg.Limits
	if req.Timeout != 0 {
		// A caller may ask for more than the default, up to the top; checkRequest judged that.
		installation.Timeout = req.Timeout
	}
	if script.Script == nil {
		return installation
	}
	return installation.Narrow(script.Script.Limits)
}
