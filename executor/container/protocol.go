package container

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"

	"github.com/sallyport-dev/sallyport"
)

// The wire between the executor and PID 1 of a container. helper/protocol.h is the other side and says what each number means;
// TestProtocolMatchesHelper compares the two.
const (
	pathInit      = "/.sallyport/init"
	pathSkill     = "/skill"
	pathHome      = "/home/skill"
	pathInput     = "/run/sallyport/input"
	pathOutputDir = "/run/sallyport/output/run"
	nameOutput    = "output.json"
	nameArtifacts = "artifacts"

	configMagic    = 0x434c4153
	configVersion  = 1
	configMaxBytes = 4194304
	stdinMaxBytes  = 67108864

	rootSkill = 0
	rootInput = 1

	commandGo   = 'G'
	commandKill = 'K'

	frameReady       = 1
	frameStarted     = 2
	frameStartFailed = 3
	frameExited      = 4
	frameOutput      = 5
	frameArtifact    = 6
	frameSkipped     = 7
	frameEnd         = 8
	frameStream      = 9
	frameTotal       = 10
	frameUsage       = 11

	killedByCommand = 1
	killedByCPU     = 2

	usageCPU          = 1
	usageMemoryPeak   = 2
	usageOOMKills     = 3
	usageProcessLimit = 4

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

	skipNotRegular  = 1
	skipHardLink    = 2
	skipTooLarge    = 3
	skipTooMany     = 4
	skipTooDeep     = 5
	skipPathTooLong = 6
	skipUnreadable  = 7

	skipMaxFrames   = 64
	artifactPathMax = 1024
	streamChunk     = 32768

	landlockMinABI = 2
)

// order is that of both machines that have a helper.
var order = binary.LittleEndian

// orders are what PID 1 is told, once.
type orders struct {
	argv   []string // argv[0] is a program, or its name
	env    []string // NAME=value
	filter []byte
	stdin  []byte
	files  []sallyport.Component
	inputs []sallyport.InputFile

	artifactFiles, artifactEntries, artifactDepth, cpuCount, cpuFirst                          uint32
	streamBytes, artifactBytes, outputBytes, nofile, fsize, nproc, memlock, cpuBudgetMicrosecs uint64
}

// Why orders cannot be given.
var (
	errStringHasNUL   = errors.New("an argument or variable contains a NUL byte")
	errConfigTooLarge = errors.New("the arguments and variables are larger than a process can take")
	errStdinTooLarge  = errors.New("the standard input is larger than can be handed over")
)

// write hands everything over.
func (o orders) write(w io.Writer) error {
	header, err := o.encode()
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	if _, err := w.Write(o.stdin); err != nil {
		return err
	}
	for _, f := range o.files {
		if err := writeFile(w, rootSkill, f.Path, f.Content); err != nil {
			return err
		}
	}
	for _, f := range o.inputs {
		if err := writeFile(w, rootInput, f.Name, f.Content); err != nil {
			return err
		}
	}
	return nil
}

// encode is struct config_header and its blobs. The strings are only ever copied, never looked at by PID 1.
func (o orders) encode() ([]byte, error) {
	argv, err := stringBlob(o.argv)
	if err != nil {
		return nil, err
	}
	env, err := stringBlob(o.env)
	if err != nil {
		return nil, err
	}
	if len(argv)+len(env)+len(o.filter) > configMaxBytes {
		return nil, errConfigTooLarge
	}
	if len(o.stdin) > stdinMaxBytes {
		return nil, errStdinTooLarge
	}
	var b []byte
	for _, v := range []uint32{
		configMagic, configVersion,
		uint32(len(argv)), uint32(len(o.argv)), uint32(len(env)), uint32(len(o.env)), uint32(len(o.filter)),
		uint32(len(o.files) + len(o.inputs)),
		o.artifactFiles, o.artifactEntries, o.artifactDepth, o.cpuCount, o.cpuFirst, 0,
	} {
		b = order.AppendUint32(b, v)
	}
	for _, v := range []uint64{
		uint64(len(o.stdin)), o.streamBytes, o.artifactBytes, o.outputBytes, o.nofile, o.fsize, o.nproc, o.memlock, o.cpuBudgetMicrosecs,
	} {
		b = order.AppendUint64(b, v)
	}
	// The filter first: it must be aligned.
	b = append(b, o.filter...)
	b = append(b, argv...)
	return append(b, env...), nil
}

func writeFile(w io.Writer, root uint32, path string, content []byte) error {
	header := order.AppendUint32(nil, root)
	header = order.AppendUint32(header, uint32(len(path)))
	header = order.AppendUint64(header, uint64(len(content)))
	if _, err := w.Write(append(header, path...)); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
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
	return frame{kind: order.Uint32(b[0:]), value: order.Uint32(b[4:]), pathLen: order.Uint32(b[8:]), size: order.Uint64(b[16:])}
}

// number is a counter that PID 1 sent, as the root package has them.
func (f frame) number() int64 { return int64(min(f.size, math.MaxInt64)) }
