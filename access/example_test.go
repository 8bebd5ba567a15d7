package access_test

import (
	"context"
	"fmt"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

// A reviewer grants the digest that was read; another digest is refused.
func ExampleService_Issue() {
	_, service := newWorld() // over a Store, a Trail and the registry
	reviewer := admin()
	request := access.IssueRequest{
		Ref: sallyport.SkillRef{Slug: "csv"}, ScriptPath: "scripts/a.py", ExpectedDigest: pinOne,
	}
	grant, err := service.Issue(context.Background(), reviewer, request)
	fmt.Println(grant.Slug, grant.ScriptPath, grant.Pin == pinOne, err)

	request.ExpectedDigest = pinTwo
	_, err = service.Issue(context.Background(), reviewer, request)
	fmt.Println(sallyport.CodeOf(err))
	// Output:
	// csv scripts/a.py true <nil>
	// GRANT_CONFLICT
}
