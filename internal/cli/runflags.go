package cli

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
)

// scriptCall is what run and explain have in common.
type scriptCall struct {
	Slug     string   `arg:"" help:"The skill's slug." name:"slug"`
	Script   string   `arg:"" help:"The script's path inside the skill." name:"script"`
	Argv     []string `arg:"" help:"Arguments for the script itself, after --." optional:""`
	Args     *string  `help:"The arguments as one JSON object, for the script's standard input or flags." placeholder:"JSON" xor:"args"`
	ArgsFile string   `help:"Read the arguments from this file; - is standard input." placeholder:"FILE" xor:"args"`
	Timeout  *string  `help:"Stop the script after this many whole seconds." placeholder:"SECONDS"`
	Revision string   `help:"The revision to run, by id or number (default: the published one, else the latest)." placeholder:"ID"`
	File     []string `help:"Send a file along under this name; may be repeated." placeholder:"NAME=PATH" sep:"none"`
	Team     string   `help:"The team, where two have a skill of this slug." placeholder:"TEAM"`
}

// request reads what the flags name, the revision aside. Values are judged by the server; here is only what cannot be sent.
func (c *scriptCall) request(a *app) (client.RunRequest, error) {
	req := client.RunRequest{
		Ref:        sallyport.SkillRef{Slug: c.Slug, TeamID: sallyport.TeamID(c.Team)},
		ScriptPath: c.Script,
	}
	if len(c.Argv) > 0 {
		req.Argv = c.Argv
	}
	var err error
	if req.Args, err = c.arguments(a); err != nil {
		return req, err
	}
	if req.TimeoutSeconds, err = c.seconds(); err != nil {
		return req, err
	}
	for _, text := range c.File {
		file, err := inputFile(text)
		if err != nil {
			return req, err
		}
		req.Files = append(req.Files, file)
	}
	return req, nil
}

// maxArgsFile is far above what any server takes; it keeps a wrong file out of memory.
const maxArgsFile = 16 << 20

func (c *scriptCall) arguments(a *app) (json.RawMessage, error) {
	name := "--args"
	var data []byte
	switch {
	case c.Args != nil:
		data = []byte(*c.Args)
	case c.ArgsFile == "-":
		name = "standard input"
		text, err := io.ReadAll(io.LimitReader(a.stdin, maxArgsFile+1))
		if err != nil {
			return nil, invalid("standard input cannot be read: %v", err)
		}
		data = text
	case c.ArgsFile != "":
		name = c.ArgsFile
		text, err := readFile(c.ArgsFile, maxArgsFile)
		if err != nil {
			return nil, err
		}
		data = text
	default:
		return nil, nil
	}
	if len(data) > maxArgsFile {
		return nil, sallyport.Errorf("cli.run", sallyport.CodeArgumentsTooLarge, "%s is over %s", name, bytesText(maxArgsFile))
	}
	// The bytes go to the server as they are; what is no JSON at all could not be put into a request.
	var syntax *json.SyntaxError
	var whole json.RawMessage
	switch err := json.Unmarshal(data, &whole); {
	case errors.As(err, &syntax):
		return nil, invalid("%s is not JSON: %v (at byte %d)", name, err, syntax.Offset)
	case err != nil:
		return nil, invalid("%s is not JSON: %v", name, err)
	}
	return data, nil
}

// seconds returns the timeout as a JSON number, nil when none was given.
func (c *scriptCall) seconds() (*int64, error) {
	if c.Timeout == nil {
		return nil, nil //nolint:nilnil // no timeout is not an error
	}
	n, err := strconv.ParseInt(*c.Timeout, 10, 64)
	if err != nil {
		return nil, invalid("--timeout wants whole seconds, got %q", *c.Timeout)
	}
	return &n, nil
}

// inputFile reads NAME=PATH, or a PATH whose last element is the name.
func inputFile(text string) (sallyport.InputFile, error) {
	name, path, found := strings.Cut(text, "=")
	if !found {
		name, path = filepath.Base(text), text
	}
	if name == "" || path == "" {
		return sallyport.InputFile{}, badUsage("--file wants NAME=PATH, got " + strconv.Quote(text))
	}
	// Kept from the server: a name it would refuse must not make us read a file first.
	if err := sallyport.CheckPath(name); err != nil {
		return sallyport.InputFile{}, sallyport.Errorf("cli.run", sallyport.CodeUnsafePath, "--file %s: %s", strconv.Quote(name), sallyport.Public(err).Message)
	}
	content, err := readFile(path, sallyport.DefaultInputBytes)
	if err != nil {
		return sallyport.InputFile{}, err
	}
	return sallyport.InputFile{Name: name, Content: content}, nil
}

// readFile reads a file that the user named, of at most limit bytes and one more.
func readFile(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, invalid("%s: there is no such file", path)
	case err != nil:
		return nil, invalid("%s: cannot be opened: %v", path, errors.Unwrap(err))
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, invalid("%s: cannot be read: %v", path, errors.Unwrap(err))
	}
	return data, nil
}
