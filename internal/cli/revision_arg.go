package cli

import (
	"context"
	"strconv"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
)

// revisionNamed is the revision that a person names: by id, or by its number. Nothing names none.
func revisionNamed(ctx context.Context, api *client.Client, ref sallyport.SkillRef, text string) (sallyport.RevisionID, error) {
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		return sallyport.RevisionID(text), nil //nolint:nilerr // it is an id then
	}
	revisions, err := api.Revisions(ctx, ref)
	if err != nil {
		return "", err
	}
	for _, r := range revisions.Data.Revisions {
		if r.Number == number {
			return r.ID, nil
		}
	}
	return "", sallyport.Errorf("cli.revision", sallyport.CodeRevisionNotFound,
		"the skill has no revision %d; see sallyport skill revisions %s", number, ref.Slug)
}
