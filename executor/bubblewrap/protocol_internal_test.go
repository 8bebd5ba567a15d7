package bubblewrap

import (
	"encoding/binary"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The two sides of the wire are written in two languages. This compares every number and path of helper/protocol.h with
// protocol.go.
func TestProtocolMatchesHelper(t *testing.T) {
	t.Parallel()
	header, err := os.ReadFile("helper/protocol.h")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^#define ([A-Z_]+) (\S+)`).FindAllStringSubmatch(string(header), -1) {
		value := strings.Trim(m[2], `"`)
		if n, err := strconv.ParseInt(value, 0, 64); err == nil {
			value = strconv.FormatInt(n, 10)
		}
		got[m[1]] = value
	}
	want := map[string]string{
		"PATH_INIT": pathInit, "PATH_SKILL": pathSkill, "PATH_OUTPUT_DIR": pathOutputDir, "PATH_HOME": pathHome,
		"NAME_OUTPUT": nameOutput, "NAME_ARTIFACTS": nameArtifacts, "COMMAND_KILL": "'" + string(rune(commandKill)) + "'",
	}
	for name, n := range map[string]int64{
		"FD_REPORT": fdReport, "FD_CONTROL": fdControl, "FD_REVISION": fdRevision,
		"CONFIG_MAGIC": configMagic, "CONFIG_VERSION": configVersion, "CONFIG_MAX_BYTES": configMaxBytes, "FILTER_MAX_BYTES": filterMaxBytes,
		"FRAME_READY": frameReady, "FRAME_STARTED": frameStarted, "FRAME_START_FAILED": frameStartFailed, "FRAME_EXITED": frameExited,
		"FRAME_OUTPUT": frameOutput, "FRAME_ARTIFACT": frameArtifact, "FRAME_SKIPPED": frameSkipped, "FRAME_END": frameEnd,
		"STAGE_CONFIG": stageConfig, "STAGE_STAGING": stageStaging, "STAGE_FORK": stageFork, "STAGE_SESSION": stageSession,
		"STAGE_LIMITS": stageLimits, "STAGE_PRIVILEGES": stagePrivileges, "STAGE_DIRECTORY": stageDirectory, "STAGE_FILTER": stageFilter,
		"STAGE_EXEC": stageExec, "STAGE_LANDLOCK": stageLandlock, "STAGE_IDENTITY": stageIdentity, "CPU_WORDS": cpuWords, "LANDLOCK_MIN_ABI": landlockMinABI,
		"SKIP_NOT_REGULAR": skipNotRegular, "SKIP_HARD_LINK": skipHardLink, "SKIP_TOO_LARGE": skipTooLarge, "SKIP_TOO_MANY": skipTooMany,
		"SKIP_TOO_DEEP": skipTooDeep, "SKIP_PATH_TOO_LONG": skipPathTooLong, "SKIP_UNREADABLE": skipUnreadable,
		"SKIP_MAX_FRAMES": skipMaxFrames, "ARTIFACT_PATH_MAX": artifactPathMax,
	} {
		want[name] = strconv.FormatInt(n, 10)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("protocol.go and protocol.h differ (-go +c):\n%s", diff)
	}
}

func TestConfigEncode(t *testing.T) {
	t.Parallel()
	filter := make([]byte, 16)
	b, err := config{argv: []string{"/bin/x", "", "a b"}, env: []string{"A=1"}, filter: filter, data: 7, cpuTime: 6, runID: 5, cpus: cpuMask{1: 9}}.encode()
	if err != nil {
		t.Fatal(err)
	}
	const header = 12*4 + 8*8 + cpuWords*8
	if got, want := string(b[header+16:]), "/bin/x\x00\x00a b\x00A=1\x00"; got != want {
		t.Errorf("blobs %q, want %q", got, want)
	}
	if got := binary.NativeEndian.Uint32(b[2*4:]); got != 12 {
		t.Errorf("argv_len %d, want 12", got)
	}
	if got := binary.NativeEndian.Uint32(b[10*4:]); got != 5 {
		t.Errorf("run_id %d, want 5", got)
	}
	if got := binary.NativeEndian.Uint64(b[12*4+6*8:]); got != 7 {
		t.Errorf("limit_data %d, want 7", got)
	}
	if got := binary.NativeEndian.Uint64(b[12*4+7*8:]); got != 6 {
		t.Errorf("limit_cpu %d, want 6", got)
	}
	if got := binary.NativeEndian.Uint64(b[12*4+9*8:]); got != 9 {
		t.Errorf("second word of cpus %d, want 9", got)
	}
	for name, tt := range map[string]struct {
		config config
		want   error
	}{
		"NUL in an argument": {config{argv: []string{"a\x00b"}, filter: filter}, errStringHasNUL},
		"NUL in a variable":  {config{argv: []string{"a"}, env: []string{"a=\x00"}, filter: filter}, errStringHasNUL},
		"too large":          {config{argv: []string{strings.Repeat("x", configMaxBytes)}, filter: filter}, errConfigTooLarge},
		"no filter":          {config{argv: []string{"a"}}, errFilterMalformed},
		"half a filter":      {config{argv: []string{"a"}, filter: filter[:12]}, errFilterMalformed},
	} {
		if _, err := tt.config.encode(); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
}
