package audit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/audit"
)

func TestMask(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want string }{
		"nothing":          {`{"a": 1, "b":[true,null,"x"]}`, `{"a": 1, "b":[true,null,"x"]}`},
		"api_key":          {`{"api_key":"x"}`, `{"api_key":"***"}`},
		"X-Api-Key":        {`{"X-Api-Key":"x"}`, `{"X-Api-Key":"***"}`},
		"apikeys":          {`{"APIKEYS":["x","y"]}`, `{"APIKEYS":"***"}`},
		"authToken":        {`{"authToken":"x","z":1}`, `{"authToken":"***","z":1}`},
		"maxTokens":        {`{"maxTokens":12}`, `{"maxTokens":12}`},
		"max_tokens":       {`{"max_tokens":12,"TOKENS":1,"tokens_used":2}`, `{"max_tokens":12,"TOKENS":1,"tokens_used":2}`},
		"tokenString":      {`{"tokenString":"x","token_source":"y"}`, `{"tokenString":"***","token_source":"***"}`},
		"tokens and token": {`{"tokens_token":"x"}`, `{"tokens_token":"***"}`},
		"authorization":    {`{"Proxy-Authorization":"x"}`, `{"Proxy-Authorization":"***"}`},
		"password":         {`{"db.PassWord":null}`, `{"db.PassWord":"***"}`},
		"secret number":    {`{"client secret":7}`, `{"client secret":"***"}`},
		"secret object":    {`{"secrets":{"a":{"b":1}},"c":2}`, `{"secrets":"***","c":2}`},
		"deep":             {`{"a":[{"b":{"password":"x"}}],"c":[[{"token":"y"}]]}`, `{"a":[{"b":{"password":"***"}}],"c":[[{"token":"***"}]]}`},
		"escaped name":     {`{"p\u0061ssword":"x"}`, `{"p\u0061ssword":"***"}`},
		"value is no name": {`{"a":"password","b":["token"]}`, `{"a":"password","b":["token"]}`},
		"numbers kept":     {`{"n":9007199254740993,"m":1.50,"token":1}`, `{"n":9007199254740993,"m":1.50,"token":"***"}`},
		"text kept":        {`{"s":"a\u003cb \u00e9","token":1}`, `{"s":"a\u003cb \u00e9","token":"***"}`},
		"scalar":           {`"password"`, `"password"`},
		"empty name":       {`{"":1}`, `{"":1}`},
		"other letters":    {`{"ключ":1,"пароль":2}`, `{"ключ":1,"пароль":2}`},
		"not JSON":         {`password=x`, `"***"`},
		"cut":              {`{"a":`, `"***"`},
		"empty":            {``, `"***"`},
		"two values":       {`{"a":1}{"b":2}`, `"***"`},
		"duplicate":        {`{"a":1,"a":2}`, `"***"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := string(audit.Mask(json.RawMessage(test.in))); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func FuzzMask(f *testing.F) {
	f.Add(`{"api_key":"x","a":[{"token":1}]}`)
	f.Add(`[1,"x",null]`)
	f.Add(`{"tokens":1}{`)
	f.Fuzz(func(t *testing.T, in string) {
		got := audit.Mask(json.RawMessage(in))
		if !json.Valid(got) {
			t.Fatalf("%q became %q, which is not JSON", in, got)
		}
		if again := audit.Mask(got); string(again) != string(got) && strings.Contains(in, "***") == strings.Contains(string(got), "***") {
			t.Fatalf("%q became %q and then %q", in, got, again)
		}
	})
}
