package registry

import (
	"mime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

// maxMessageBytes bounds the message of a revision.
const maxMessageBytes = 4 << 10

func checkMessage(op, message string) error {
	if len(message) > maxMessageBytes || !utf8.ValidString(message) {
		return sallyport.Errorf(op, sallyport.CodeInvalidArgument, "the message is not UTF-8 text of at most %d bytes", maxMessageBytes)
	}
	return nil
}

func checkRequest(req SaveRequest) error {
	if err := checkMessage(opSave, req.Message); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, name := range req.Remove {
		if err := checkRequestPath(name); err != nil {
			return err
		}
		seen[name] = true
	}
	for _, f := range req.Files {
		if err := checkRequestPath(f.Path); err != nil {
			return err
		}
		invalid := ""
		whole, leftOut := ignoredAt(f.Path, false)
		switch {
		case leftOut:
			invalid = "the name " + strconv.Quote(shorten(whole)) + " is on the list of names that are left out of skills; rename it or leave it out"
		case seen[f.Path]:
			invalid = "the path is in the request twice"
		case f.Kind != "" && !f.Kind.Valid():
			invalid = "the kind is none of script, reference, example, template, document, artifact"
		case f.Script != nil && f.Kind != "" && f.Kind != sallyport.KindScript:
			invalid = "script settings are for scripts only"
		case !validMediaType(f.MediaType):
			invalid = "the media type is not one such as text/markdown"
		}
		if invalid != "" {
			return sallyport.Errorf(opSave, sallyport.CodeInvalidArgument, "%q: %s", shorten(f.Path), invalid)
		}
		seen[f.Path] = true
	}
	return nil
}

func checkRequestPath(name string) error {
	err := sallyport.CheckPath(name)
	if err == nil {
		return nil
	}
	return &sallyport.Error{
		Op: opSave, Code: sallyport.CodeUnsafePath,
		Message: sallyport.Public(err).Message + "; nothing was saved; send paths relative to the skill's root, such as scripts/run.py",
		Details: map[string]any{"path": shorten(printable(name))},
	}
}

func validMediaType(mediaType string) bool {
	if mediaType == "" {
		return true
	}
	parsed, _, err := mime.ParseMediaType(mediaType)
	return err == nil && len(mediaType) <= 255 && strings.Contains(parsed, "/")
}

// slugOfRequest derives the slug from the name in the SKILL.md of a request that names no skill.
func slugOfRequest(req SaveRequest) (string, error) {
	for _, f := range req.Files {
		if f.Path != SkillFile {
			continue
		}
		md := ParseSkillMD(f.Content, "")
		if err := refusal(md.Problems); err != nil {
			return "", err
		}
		return Slug(md.Name), nil
	}
	return "", sallyport.Errorf(opSave, sallyport.CodeInvalidArgument, "the request names no skill; send slug or skill_id, or a %s with a name", SkillFile)
}

// merge applies a request to the files.
func merge(files map[string]stagedFile, req SaveRequest) error {
	for _, name := range req.Remove {
		if _, found := files[name]; !found {
			return sallyport.Errorf(opSave, sallyport.CodeComponentNotFound, "there is no component %q to remove", shorten(name))
		}
		delete(files, name)
	}
	sendsSettings := false
	for _, f := range req.Files {
		files[f.Path] = stagedFile{content: slices.Clone(f.Content), mode: f.Mode, mediaType: f.MediaType}
		sendsSettings = sendsSettings || f.Path == SettingsFile
	}
	renameSkillFile(files)
	removed := req.Remove
	if sendsSettings {
		removed = nil // whoever sends the file answers for what it says
	}
	return declare(files, req.Files, removed)
}

// renameSkillFile stores a skill.md as SKILL.md when there is no such file.
func renameSkillFile(files map[string]stagedFile) {
	lower := strings.ToLower(SkillFile)
	file, found := files[lower]
	if _, exact := files[SkillFile]; found && !exact {
		files[SkillFile] = file
		delete(files, lower)
	}
}

// refusal turns the errors among problems into the error of a save.
func refusal(problems []Problem) error {
	if !hasErrors(problems) {
		return nil
	}
	code := sallyport.CodeSkillInvalid
	for _, found := range problems {
		switch found.Code {
		case ProblemSkillTooLarge:
			code = sallyport.CodeSkillTooLarge
		case ProblemUnsafePath, ProblemInvisible:
			code = sallyport.CodeUnsafePath
		case ProblemConflict:
			code = sallyport.CodeRevisionConflict
		}
	}
	return &sallyport.Error{
		Op: opSave, Code: code, Message: firstError(problems) + "; nothing was saved",
		Details: map[string]any{"problems": problems},
	}
}
