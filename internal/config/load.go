package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// DefaultListen is where a server listens when nothing else is said.
const DefaultListen = "127.0.0.1:8787"

// maxFileBytes bounds server.yaml.
const maxFileBytes = 1 << 20

// Flag is one setting from the command line.
type Flag struct {
	// Key as in server.yaml.
	Key string
	// Value is one value, comma-separated values of a list, or comma-separated name=value pairs of a map.
	Value string
	// Name is how the user wrote it, for messages.
	Name string
}

// Sources are where settings come from, the strongest first: Flags, Env, File, defaults.
type Sources struct {
	Flags []Flag
	Env   Environment
	// File is a server.yaml, empty for none. One that is named must exist.
	File string
}

// Load merges the sources and resolves the result. Errors are INVALID_ARGUMENT and name the source, the line and the
// setting.
func Load(src Sources) (Settings, error) {
	s := Settings{OTel: src.Env.OTel, Listen: DefaultListen, Isolation: IsolationEnforce, LogLevel: "info", LogFormat: "text"}
	file := src.File
	if file == "" {
		file = src.Env.ConfigFile
	}
	if file != "" {
		if err := applyFile(&s, file); err != nil {
			return Settings{}, err
		}
	}
	if err := src.Env.apply(&s); err != nil {
		return Settings{}, err
	}
	byKey := rows()
	for _, flag := range src.Flags {
		row, known := byKey[flag.Key]
		if !known {
			return Settings{}, invalid("%s: %s", flag.Name, unknownSetting(flag.Key))
		}
		if err := row.setText(&s, flag.Value); err != nil {
			return Settings{}, invalid("%s: %v", flag.Name, err)
		}
	}
	if s.DataDir == "" {
		if src.Env.dataHome == "" {
			return Settings{}, invalid("there is no home folder to keep the data in: name a data folder with --data DIR")
		}
		s.DataDir = filepath.Join(src.Env.dataHome, "sallyport")
	}
	return s.Resolve()
}

func applyFile(s *Settings, path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return invalid("%s: there is no such file", path)
	case err != nil:
		return invalid("%s: %v", path, err)
	case !info.Mode().IsRegular():
		return invalid("%s: is not a file", path)
	case info.Size() > maxFileBytes:
		return invalid("%s: is over 1MiB, which no server.yaml is", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return &sallyport.Error{
			Op: "config", Code: sallyport.CodeInvalidArgument, Message: path + ": cannot be read", Err: err,
		}
	}
	return applyYAML(s, filepath.Base(path), data)
}

// setText sets the row from one string: a list is comma-separated, a map is comma-separated name=value pairs.
func (r setting) setText(s *Settings, value string) error {
	switch {
	case r.list != nil:
		return r.list(s, splitList(value))
	case r.pairs != nil && strings.Contains(value, "="):
		pairs := map[string]string{}
		for _, item := range splitList(value) {
			name, text, found := strings.Cut(item, "=")
			if _, twice := pairs[name]; twice || !found {
				return errors.New("want name=value pairs, each name once, got " + quote(value))
			}
			pairs[name] = text
		}
		return r.pairs(s, pairs)
	default:
		return r.text(s, value)
	}
}

func splitList(value string) []string {
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func unknownSetting(key string) string {
	text := "there is no setting " + quote(key)
	if near := nearest(key); near != "" {
		text += "; did you mean " + near + "?"
	}
	return text
}
