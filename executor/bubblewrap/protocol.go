package bubblewrap

import (
	"encoding/binary"
	"errors"
	"strings"
)

// The wire between the supervisor and PID 1 of a sandbox. helper/protocol.h is the other side and says what each number
// means; TestProtocolMatchesHelper compares the two.
const (
	fdReport   = 3
	fdControl  = 4
	fdRevision = 5

	pathInit      = "/run/sallyport/init"
	pathSkill     = "/skill"
	pathHome      = "/home/skill"
	pathOutputDir = "/run/sallyport/output"
	nameOutput    = "output.json"
	nameArtifacts = "artifacts"

	configMagic    = 0x54504c53
	configVersion  = 3
	configMaxBytes = 4194304
	filterMaxBytes = 32768
	cpuWords       = 16

	commandKill = 'K'

	frameReady       = 1
	frameStarted     = 2
	frameStartFailed = 3
	frameExited      = 4
	frameOutput      = 5
	frameArtifact    = 6
	frameSkipped     = 7
	frameEnd         = 8

	stageConfig     = 1
	stageStaging    = 2
	stageFork       = 3
	stageSession    = 4
	stageLimits     = 5
	stagePrivileges = 6
	stageDirectory  = 7
	stageFilter     = 8
	stageExec       = 9
	stageLandlock   = 10
	stageIdentity   = 11

	skipNotRegular  = 1
	skipHardLink    = 2
	skipTooLarge    = 3
	skipTooMany     = 4
	skipTooDeep     = 5
	skipPathTooLong = 6
	skipUnreadable  = 7

	skipMaxFrames   = 64
	artifactPathMax = 1024

	landlockMinABI = 2
)

// config is what PID 1 is told, once.
type config struct {
	argv   []string // argv[0] is the program
	env    []string // NAME=value
	filter []byte

	artifactFiles, artifactEntries, artifactDepth uint32
	runID                                         uint32 // 0: bubblewrap was started under the run's uid
	artifactBytes, outputBytes                    uint64
	nofile, fsize, nproc, memlock, data, cpuTime  uint64
	cpus                                          cpuMask
}

// cpuMask is a set of CPUs as the kernel takes it.
type cpuMask [cpuWords]uint64

// Why a configuration cannot be sent.
var (
	errStringHasNUL    = errors.New("an argument or variable contains a NUL byte")
	errConfigTooLarge  = errors.New("the arguments and variables are larger than a process can take")
	errFilterMalformed = errors.New("the seccomp filter has no valid size")
)

// encode writes struct config_header and its blobs. The strings are only ever copied, never looked at by PID 1.
func (c config) encode() ([]byte, error) {
	argv, err := stringBlob(c.argv)
	if err != nil {
		return nil, err
	}
	env, err := stringBlob(c.env)
	if err != nil {
		return nil, err
	}
	if len(argv)+len(env)+len(c.filter) > configMaxBytes {
		return nil, errConfigTooLarge
	}
	if len(c.filter) == 0 || len(c.filter) > filterMaxBytes || len(c.filter)%8 != 0 {
		return nil, errFilterMalformed
	}
	var b []byte
	for _, v := range []uint32{
		configMagic, configVersion,
		uint32(len(argv)), uint32(len(c.argv)), uint32(len(env)), uint32(len(c.env)), uint32(len(c.filter)),
		c.artifactFiles, c.artifactEntries, c.artifactDepth, c.runID, 0,
	} {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	for _, v := range []uint64{c.artifactBytes, c.outputBytes, c.nofile, c.fsize, c.nproc, c.memlock, c.data, c.cpuTime} {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	for _, word := range c.cpus {
		b = binary.NativeEndian.AppendUint64(b, word)
	}
	// The filter first: it must be aligned.
	b = append(b, c.filter...)
	b = append(b, argv...)
	return append(b, env...), nil
}

func stringBlob(list []string) ([]byte, error) {
	var b []byte
	for _, s := range list {
		if strings.IndexByte(s, 0) >= 0 {
			return nil, errStringHasNUL
		}
		b = append(append(b, s...), 0)
	}
	return b, nil
}

// frame is struct frame.
type frame struct {
	kind, value, pathLen uint32
	size                 uint64
}

const frameBytes = 24

func decodeFrame(b [frameBytes]byte) frame {
	return frame{
		kind:    binary.NativeEndian.Uint32(b[0:]),
		value:   binary.NativeEndian.Uint32(b[4:]),
		pathLen: binary.NativeEndian.Uint32(b[8:]),
		size:    binary.NativeEndian.Uint64(b[16:]),
	}
}
