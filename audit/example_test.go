package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
)

// An exported trail is checked without the database. Only a checkpoint that was kept elsewhere proves its end.
func ExampleVerifyExport() {
	ctx := context.Background()
	service := audit.New(audit.Config{Store: newMemory()})
	for _, action := range []sallyport.Action{sallyport.ActionScriptRun, sallyport.ActionScriptFinished} {
		_ = service.Append(ctx, sallyport.Entry{
			TenantID: tenant, Action: action, Entity: "csv/profile.py", Detail: json.RawMessage(`{"api_key":"x"}`),
		})
	}
	var file bytes.Buffer
	_ = service.Export(ctx, auditor(), &file)
	verdict, err := audit.VerifyExport(bytes.NewReader(file.Bytes()), audit.Evidence{})
	fmt.Println(verdict.Result, verdict.Checked, verdict.Tail, err)

	tampered := bytes.Replace(file.Bytes(), []byte("script.finished"), []byte("script.denied"), 1)
	verdict, err = audit.VerifyExport(bytes.NewReader(tampered), audit.Evidence{})
	fmt.Println(verdict.Result, verdict.Sequence, err)
	// Output:
	// valid 2 not_provable <nil>
	// broken 2 <nil>
}
