package mcpapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strconv"
	"time"
)

// The schemas are JSON Schema 2020-12 in the common subset: one type each and no references, which is what every host reads. The
// output schemas describe the envelope and are open at the top, so that a later member breaks no client.
var (
	//go:embed schema/context_input.json
	contextInputJSON []byte
	//go:embed schema/context_output.json
	contextOutputJSON []byte
	//go:embed schema/execute_input.json
	executeInputJSON []byte
	//go:embed schema/execute_output.json
	executeOutputJSON []byte
	//go:embed schema/recall_input.json
	recallInputJSON []byte
	//go:embed schema/recall_output.json
	recallOutputJSON []byte
	//go:embed schema/save_input.json
	saveInputJSON []byte
	//go:embed schema/save_output.json
	saveOutputJSON []byte
)

// executeInput names the installation's own top for timeout_seconds.
func executeInput(maxTimeout time.Duration) json.RawMessage {
	maximum := strconv.AppendInt([]byte(`"maximum": `), int64(maxTimeout/time.Second), 10)
	return bytes.Replace(executeInputJSON, []byte(`"maximum": 60`), maximum, 1)
}

func contextInput() json.RawMessage  { return bytes.Clone(contextInputJSON) }
func contextOutput() json.RawMessage { return bytes.Clone(contextOutputJSON) }
func executeOutput() json.RawMessage { return bytes.Clone(executeOutputJSON) }
func recallInput() json.RawMessage   { return bytes.Clone(recallInputJSON) }
func recallOutput() json.RawMessage  { return bytes.Clone(recallOutputJSON) }
func saveInput() json.RawMessage     { return bytes.Clone(saveInputJSON) }
func saveOutput() json.RawMessage    { return bytes.Clone(saveOutputJSON) }
