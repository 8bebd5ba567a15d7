package server_test

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/server"
)

// A call that is sent again with its idempotency key is answered with the record of the first, through the client too.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	s, _ := quotaServer(t, server.Quotas{})
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	c, err := client.New(client.Config{URL: web.URL, Key: mint(t, s, "agent")})
	if err != nil {
		t.Fatal(err)
	}
	run := func(key, args string) (sallyport.ExecutionID, error) {
		got, err := c.Run(t.Context(), client.RunRequest{
			Ref: sallyport.SkillRef{Slug: "greet"}, ScriptPath: "scripts/run.sh", Args: json.RawMessage(args), IdempotencyKey: key,
		})
		if err != nil {
			return "", err
		}
		return got.Data.ID, nil
	}
	first, err1 := run("k", `{"a":1}`)
	again, err2 := run("k", `{"a":1}`)
	other, err3 := run("k2", `{"a":1}`)
	plain, err4 := run("", `{"a":1}`)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil {
		t.Fatal(err1, err2, err3, err4)
	}
	if again != first || other == first || plain == first || plain == other {
		t.Errorf("ran as %s, %s, %s, %s", first, again, other, plain)
	}
	if _, err := run("k", `{"a":2}`); sallyport.CodeOf(err) != sallyport.CodeInvalidArgument {
		t.Errorf("another request: got %v", err)
	}
	// Another principal's key of the same name is its own.
	key := mint(t, s, "second")
	if c, err = client.New(client.Config{URL: web.URL, Key: key}); err != nil {
		t.Fatal(err)
	}
	if theirs, err := run("k", `{"a":2}`); err != nil || theirs == first {
		t.Errorf("another principal: %s, %v", theirs, err)
	}
}
