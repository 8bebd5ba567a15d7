package cli

import (
	"context"
	"strings"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
)

type skillDeleteDraftCommand struct {
	skillArg
	Revision string `arg:"" help:"The draft, by id or number." name:"revision"`
}

// Help says what stays.
func (*skillDeleteDraftCommand) Help() string { return whatStays }

const whatStays = "A revision that is or was published, is the latest, or is named by a grant or an execution is never removed; the refusal says " +
	"which. The removal is audited, and numbers are never used again."

func (*skillDeleteDraftCommand) kind() string { return "revision_removal" }

func (c *skillDeleteDraftCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		id, err := revisionNamed(ctx, api, c.ref(), c.Revision)
		if err != nil {
			return err
		}
		envelope, err := api.DeleteRevision(ctx, c.ref(), id)
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, r client.RevisionRemoval) {
			p.line("%s revision %d of %s  %s", p.yellow("removed"), r.Number, p.bold(clean(c.Slug)), p.dim(string(r.Digest)))
		})
	})
}

type skillCleanCommand struct {
	skillArg
	Keep int `help:"Keep this many of the newest drafts." default:"5"`
}

// Help says what stays.
func (*skillCleanCommand) Help() string {
	return "Removes the drafts of a skill that nothing names, except for the newest. " + whatStays
}

func (*skillCleanCommand) kind() string { return "clean" }

// cleaned says what a clean-up removed and what stays although it is old.
type cleaned struct {
	Removed []client.RevisionRemoval `json:"removed"`
	Kept    []keptDraft              `json:"kept"`
}

type keptDraft struct {
	RevisionID sallyport.RevisionID `json:"revision_id"`
	Number     int                  `json:"number"`
	Reason     string               `json:"reason"`
}

func (c *skillCleanCommand) run(ctx context.Context, a *app) error {
	if c.Keep < 0 {
		return badUsage("--keep wants a number of 0 or more")
	}
	return a.withClient(ctx, func(api *client.Client) error {
		revisions, err := api.Revisions(ctx, c.ref())
		if err != nil {
			return err
		}
		done, drafts := cleaned{[]client.RevisionRemoval{}, []keptDraft{}}, 0
		for _, r := range revisions.Data.Revisions { // newest first
			if r.State != sallyport.RevisionDraft {
				continue
			}
			if drafts++; drafts <= c.Keep {
				continue
			}
			removal, err := api.DeleteRevision(ctx, c.ref(), r.ID)
			switch {
			case err == nil:
				done.Removed = append(done.Removed, *removal.Data)
			case sallyport.CodeOf(err) == sallyport.CodeRevisionConflict:
				done.Kept = append(done.Kept, keptDraft{r.ID, r.Number, sallyport.Public(err).Message})
			default:
				return err
			}
		}
		return showOwn(a, sallyport.Success(c.kind(), "", done), func(p *page, d cleaned) {
			for _, k := range d.Kept {
				p.line("%s", p.dim(clean(strings.TrimSpace(k.Reason))))
			}
			p.line("%s", p.bold(plural(len(d.Removed), "draft", "drafts")+" removed"))
		})
	})
}
