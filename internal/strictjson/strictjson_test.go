package strictjson_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	type body struct {
		Name  string `json:"name"`
		Count int    `json:"count"`
	}
	for name, test := range map[string]struct{ in, want string }{
		"ok":             {`{"name":"x","count":1}`, ""},
		"blank around":   {" \n{\"name\":\"x\"} \n", ""},
		"duplicate key":  {`{"name":"x","name":"y"}`, "malformed"},
		"duplicate deep": {`{"name":"x","other":{"a":1,"a":2}}`, "malformed"},
		"unknown field":  {`{"name":"x","nam":1}`, "unknown field at /nam"},
		"wrong case":     {`{"Name":"x"}`, "unknown field at /Name"},
		"wrong type":     {`{"count":"1"}`, "wrong type at /count"},
		"fraction":       {`{"count":1.5}`, "at /count"},
		"trailing":       {`{"name":"x"} {}`, "after the JSON value"},
		"trailing text":  {`{"name":"x"}x`, "after the JSON value"},
		"empty":          {``, "ends too early"},
		"cut":            {`{"name":`, "ends too early"},
		"bad utf-8":      {"{\"name\":\"\xff\"}", "malformed"},
		"NaN":            {`{"count":NaN}`, "malformed"},
		"deep":           {strings.Repeat("[", 65) + strings.Repeat("]", 65), "nested deeper"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got body
			err := strictjson.Decode([]byte(test.in), &got)
			if test.want == "" {
				if err != nil {
					t.Fatalf("got %v, want nil", err)
				}
				return
			}
			if code := sallyport.CodeOf(err); code != sallyport.CodeInvalidArgument {
				t.Fatalf("code: got %q, want INVALID_ARGUMENT", code)
			}
			if message := sallyport.Public(err).Message; !strings.Contains(message, test.want) {
				t.Errorf("message: got %q, want it to contain %q", message, test.want)
			}
		})
	}
}

// A caller who sends a megabyte of a name does not get it back.
func TestMessagesAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1<<19)
	for name, in := range map[string]string{
		"unknown field": `{"` + long + `":1}`,
		"duplicate key": `{"` + long + `":1,"` + long + `":1}`,
		"broken value":  `{"` + long + `":x}`,
		"a long value":  `{"count":"` + long + `"}`,
		"no surrogate":  `{"count":"\ud800` + long + `"}`,
	} {
		var got struct {
			Count int `json:"count"`
		}
		message := sallyport.Public(strictjson.Decode([]byte(in), &got)).Message
		if message == "" || len(message) > 400 || !utf8.ValidString(message) {
			t.Errorf("%s: a message of %d bytes: %.500q", name, len(message), message)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x",null]}`))
	f.Add([]byte(`{"a":1,"a":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		err := strictjson.Check(data)
		var v any
		if err == nil && strictjson.Decode(data, &v) != nil {
			t.Errorf("Check accepts %q, Decode does not", data)
		}
	})
}
