package client_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
)

// A refusal arrives with the server's own code and with a sentence that says what to do.
func Example() {
	// In an application: client.New(client.Config{URL: "https://skills.example", Key: key}).
	server := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `{"kind":"execution","data":null,"request_id":"r-1","error":{"code":"GRANT_MISSING","message":"ask a reviewer to grant it"}}`)
	})
	c, err := client.New(client.Config{Transport: client.InProcess(server)})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.Run(context.Background(), client.RunRequest{
		Ref: sallyport.SkillRef{Slug: "csv-profiler"}, ScriptPath: "scripts/profile.py", Args: []byte(`{"rows":10}`),
	})
	fmt.Println(sallyport.CodeOf(err))
	fmt.Println(sallyport.Public(err).Message)
	// Output:
	// GRANT_MISSING
	// ask a reviewer to grant it
}
