package mcpwire_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/mcpwire"
)

func TestParse(t *testing.T) {
	t.Parallel()
	id := func(s string) json.RawMessage { return json.RawMessage(s) }
	for name, test := range map[string]struct {
		in   string
		want mcpwire.Message
	}{
		"call":               {`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, mcpwire.Message{ID: id("7"), Method: "tools/list"}},
		"string id":          {`{"jsonrpc":"2.0","id":"a","method":"ping"}`, mcpwire.Message{ID: id(`"a"`), Method: "ping"}},
		"largest id":         {`{"jsonrpc":"2.0","id":9007199254740991,"method":"ping"}`, mcpwire.Message{ID: id("9007199254740991"), Method: "ping"}},
		"null params":        {`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, mcpwire.Message{ID: id("1"), Method: "ping"}},
		"unknown members":    {`{"jsonrpc":"2.0","id":1,"method":"ping","future":{"a":1}}`, mcpwire.Message{ID: id("1"), Method: "ping"}},
		"response":           {`{"jsonrpc":"2.0","id":1,"result":{}}`, mcpwire.Message{ID: id("1")}},
		"notification":       {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, mcpwire.Message{Method: "notifications/initialized"}},
		"cancelled":          {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}`, mcpwire.Message{Method: "notifications/cancelled", CancelID: id(`"x"`)}},
		"tool name":          {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}`, mcpwire.Message{ID: id("1"), Method: "tools/call", Name: "t", Arguments: id("{}")}},
		"resource uri":       {`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a://b","name":"no"}}`, mcpwire.Message{ID: id("1"), Method: "resources/read", Name: "a://b"}},
		"revision":           {`{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, mcpwire.Message{ID: id("1"), Method: "x", ProtocolVersion: "2026-07-28"}},
		"any arguments":      {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"a":2}}}`, mcpwire.Message{ID: id("1"), Method: "tools/call", Name: "t", Arguments: id(`{"a":1,"a":2}`)}},
		"arguments of utf-8": {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"arguments\":{\"a\":\"\xff\"}}}", mcpwire.Message{ID: id("1"), Method: "tools/call", Name: "t", Arguments: id("{\"a\":\"\xff\"}")}},
		"brackets in text":   {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":"` + strings.Repeat(`[\"`, 600) + `"}}}`, mcpwire.Message{ID: id("1"), Method: "tools/call", Name: "t", Arguments: id(`{"a":"` + strings.Repeat(`[\"`, 600) + `"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := mcpwire.Parse([]byte(test.in))
			if err != nil {
				t.Fatalf("got %v, want nil", err)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(mcpwire.Message{})); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWithoutArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, args, want string }{
		"in the middle": {
			`{"jsonrpc":"2.0", "id":1,"method":"tools/call","params": { "name":"t","arguments" : [1e400, "ü"] ,"_meta":{"é":1}} }`, `[1e400, "ü"]`,
			`{"jsonrpc":"2.0", "id":1,"method":"tools/call","params": { "name":"t","arguments" : {} ,"_meta":{"é":1}} }`,
		},
		"params first": {
			"\n {\"params\":{\"arguments\":\"\xff\"},\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}", "\"\xff\"",
			"\n {\"params\":{\"arguments\":{}},\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}",
		},
		"none":           {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`, ``, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`},
		"another method": {`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"arguments":{"a":"b"}}}`, ``, `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"arguments":{"a":"b"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			message, err := mcpwire.Parse([]byte(test.in))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(message.Arguments); got != test.args {
				t.Errorf("arguments: got %q, want %q", got, test.args)
			}
			if got := string(message.WithoutArguments([]byte(test.in))); got != test.want {
				t.Errorf("rest:\n got %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   string
		code int
		want string
	}{
		"empty":               {``, mcpwire.CodeParse, "ends too early"},
		"text":                {`hello`, mcpwire.CodeParse, "malformed"},
		"cut":                 {`{"jsonrpc":"2.0","id":1,`, mcpwire.CodeParse, "ends too early"},
		"trailing":            {`{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, mcpwire.CodeInvalidRequest, "data after"},
		"trailing text":       {`{"jsonrpc":"2.0","id":1,"method":"ping"}x`, mcpwire.CodeInvalidRequest, "data after"},
		"batch":               {`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, mcpwire.CodeInvalidRequest, "batches"},
		"number":              {`1`, mcpwire.CodeInvalidRequest, "must be a JSON object"},
		"no version":          {`{"id":1,"method":"ping"}`, mcpwire.CodeInvalidRequest, "jsonrpc"},
		"other version":       {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, mcpwire.CodeInvalidRequest, "jsonrpc"},
		"no method":           {`{"jsonrpc":"2.0","id":1}`, mcpwire.CodeInvalidRequest, "no method"},
		"response without id": {`{"jsonrpc":"2.0","result":{}}`, mcpwire.CodeInvalidRequest, "no method"},
		"empty method":        {`{"jsonrpc":"2.0","id":1,"method":""}`, mcpwire.CodeInvalidRequest, "method must"},
		"number as method":    {`{"jsonrpc":"2.0","id":1,"method":1}`, mcpwire.CodeInvalidRequest, "method must"},
		"wrong case":          {`{"jsonrpc":"2.0","id":1,"Method":"ping"}`, mcpwire.CodeInvalidRequest, "no method"},
		"null id":             {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, mcpwire.CodeInvalidRequest, "id must"},
		"fraction as id":      {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, mcpwire.CodeInvalidRequest, "id must"},
		"id that would round": {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, mcpwire.CodeInvalidRequest, "id must"},
		"object as id":        {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, mcpwire.CodeInvalidRequest, "id must"},
		"two methods":         {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, mcpwire.CodeInvalidRequest, `"method" comes twice`},
		"two methods escaped": {`{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call"}`, mcpwire.CodeInvalidRequest, `"method" comes twice`},
		"two params":          {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}`, mcpwire.CodeInvalidRequest, `"params" comes twice`},
		"two names":           {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`, mcpwire.CodeInvalidRequest, `"name" comes twice`},
		"two arguments":       {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{},"arguments":{}}}`, mcpwire.CodeInvalidRequest, `"arguments" comes twice`},
		"two in meta":         {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"a":1,"a":2}}}`, mcpwire.CodeInvalidRequest, "duplicate"},
		"two elsewhere":       {`{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"a","arguments":{"a":"1","a":"2"}}}`, mcpwire.CodeInvalidRequest, "duplicate"},
		"list as params":      {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, mcpwire.CodeInvalidRequest, "params must"},
		"bad utf-8 outside":   {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}", mcpwire.CodeInvalidRequest, "UTF-8"},
		"deep params":         {`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}`, mcpwire.CodeInvalidRequest, "nested deeper"},
		"deep arguments":      {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}}}`, mcpwire.CodeInvalidRequest, "nested deeper"},
		"very deep":           {strings.Repeat(`[`, 200_000), mcpwire.CodeInvalidRequest, "batches"},
		"very deep member":    {`{"jsonrpc":"2.0","x":` + strings.Repeat(`[`, 200_000), mcpwire.CodeParse, "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := mcpwire.Parse([]byte(test.in))
			fault, ok := errors.AsType[*mcpwire.Error](err)
			if !ok {
				t.Fatalf("got %v, want an Error", err)
			}
			if fault.Code != test.code {
				t.Errorf("code: got %d, want %d", fault.Code, test.code)
			}
			if !strings.Contains(fault.Message, test.want) {
				t.Errorf("message: got %q, want it to contain %q", fault.Message, test.want)
			}
		})
	}
}

// The answer to a faulty message carries its id when one was read before the fault, and otherwise none: a wrong id would answer another
// call.
func TestErrorResponse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"id first":  {`{"jsonrpc":"2.0","id":"q","method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":"q","error":{"code":-32600,"message":"invalid request: params must be a JSON object"}}`},
		"no id":     {`[]`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"invalid request: JSON-RPC batches are not supported; send one message per request"}}`},
		"two of id": {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"invalid request: the key \"id\" comes twice"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := mcpwire.Parse([]byte(test.in))
			fault, ok := errors.AsType[*mcpwire.Error](err)
			if !ok {
				t.Fatalf("got %v, want an Error", err)
			}
			if got := string(fault.Response()); got != test.want {
				t.Errorf("response:\n got %s\nwant %s", got, test.want)
			}
		})
	}
	withData := &mcpwire.Error{Code: mcpwire.CodeTransport, Message: "m", Data: sallyport.Public(&sallyport.Error{Code: sallyport.CodeAccessDenied})}
	want := `{"jsonrpc":"2.0","error":{"code":-32000,"message":"m","data":{"code":"ACCESS_DENIED","message":"access denied","retry":false}}}`
	if got := string(withData.Response()); got != want {
		t.Errorf("response:\n got %s\nwant %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"a":1},"_meta":{}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"id":2}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := mcpwire.Parse(data)
		if err == nil && !json.Valid(data) {
			t.Errorf("accepts %q, which is not JSON", data)
		}
		if fault, ok := errors.AsType[*mcpwire.Error](err); ok && !json.Valid(fault.Response()) {
			t.Errorf("answers %q with %q, which is not JSON", data, fault.Response())
		}
	})
}
