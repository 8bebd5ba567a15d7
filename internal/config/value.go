package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func quote(value string) string { return strconv.Quote(value) }

// folder accepts any path and makes it absolute.
func folder(target *string, value string) error {
	if value == "" {
		return errors.New("want a folder, got nothing")
	}
	absolute, err := filepath.Abs(value)
	if err != nil {
		return fmt.Errorf("want a folder, got %s", quote(value))
	}
	*target = absolute
	return nil
}

// program accepts an absolute path only: a relative one would depend on where the server was started.
func program(target *string, value string) error {
	if !filepath.IsAbs(value) || strings.ContainsRune(value, 0) {
		return fmt.Errorf("want an absolute path, got %s", quote(value))
	}
	*target = filepath.Clean(value)
	return nil
}

func oneOf[T ~string](target *T, value string, allowed ...T) error {
	words := make([]string, 0, len(allowed))
	for _, word := range allowed {
		if value == string(word) {
			*target = word
			return nil
		}
		words = append(words, string(word))
	}
	return fmt.Errorf("want %s, got %s", strings.Join(words, " or "), quote(value))
}

// word accepts a name; whether there is such a thing is judged by whoever has the list.
func word(target *string, value string) error {
	if value == "" || strings.Trim(value, "abcdefghijklmnopqrstuvwxyz") != "" {
		return fmt.Errorf("want a name in lower-case letters, got %s", quote(value))
	}
	*target = value
	return nil
}

// urls accepts a list of base URLs; the executor looks at each more closely.
func urls(target *[]string, values []string) error {
	for _, value := range values {
		if !strings.HasPrefix(value, "https://") && !strings.HasPrefix(value, "http://") {
			return fmt.Errorf("want a URL such as https://host:8788, got %s", quote(value))
		}
	}
	*target = values
	return nil
}

func boolean(target **bool, value string) error {
	switch value {
	case "true":
		*target = new(true)
	case "false":
		*target = new(false)
	default:
		return fmt.Errorf("want true or false, got %s", quote(value))
	}
	return nil
}

func duration(target *time.Duration, value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < time.Millisecond {
		return fmt.Errorf("want a duration such as 30s or 1m, got %s", quote(value))
	}
	*target = d
	return nil
}

func count[T int | int64](target *T, value string) error {
	n, err := strconv.ParseInt(value, 10, 31)
	if err != nil || n < 1 {
		return fmt.Errorf("want a whole number of 1 or more, got %s", quote(value))
	}
	*target = T(n)
	return nil
}

// size accepts whole bytes or a whole number with KiB, MiB or GiB.
func size(target *int64, value string) error {
	number, unit := value, int64(1)
	for suffix, factor := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, found := strings.CutSuffix(value, suffix); found {
			number, unit = strings.TrimSpace(rest), factor
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > (1<<50)/unit {
		return fmt.Errorf("want a size such as 65536, 64KiB or 512MiB, got %s", quote(value))
	}
	*target = n * unit
	return nil
}

// sizeText writes what size reads.
func sizeText(n int64) string {
	switch {
	case n%(1<<30) == 0:
		return strconv.FormatInt(n>>30, 10) + "GiB"
	case n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + "MiB"
	case n%(1<<10) == 0:
		return strconv.FormatInt(n>>10, 10) + "KiB"
	default:
		return strconv.FormatInt(n, 10)
	}
}
