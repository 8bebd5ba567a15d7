package cli

import (
	"context"
	"strconv"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/client"
)

type grantReviewCommand struct {
	skillArg
	Revision string `help:"The revision to review, by id or number (default: the published one)." placeholder:"ID"`
}

func (*grantReviewCommand) kind() string { return "review" }

func (c *grantReviewCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		id, err := revisionNamed(ctx, api, c.ref(), c.Revision)
		if err != nil {
			return err
		}
		envelope, err := api.Review(ctx, c.ref(), id)
		if err != nil {
			return err
		}
		return show(a, envelope, printReview)
	})
}

func printReview(p *page, review client.Review) {
	p.line("%s  %s", p.bold(clean(review.Skill.Slug)), clean(cut(review.Skill.Description, 160)))
	printRevision(p, "reviews", review.Revision)
	printFindings(p, review.Findings, false, findingsBeforeGrant)
	switch last := review.LastGrant; {
	case last == nil:
		p.line("%s", p.yellow("nothing of this skill was granted before"))
	case review.Diff == nil:
		p.line("%s", p.yellow("the content of the last grant, "+string(last.ID)+", is gone, so there is nothing to compare with"))
	default:
		p.line("%s %s of %s, %s", p.bold("since grant"), last.ID, when(last.IssuedAt), last.State)
		printDiff(p, *review.Diff)
	}
	p.line("%s", p.dim("grant exactly this with: sallyport grant issue "+clean(review.Skill.Slug)+" --revision "+string(review.Revision.ID)+
		" --digest "+string(review.Digest)))
}

type grantHistoryCommand struct {
	ID string `arg:"" help:"The grant's id." name:"id"`
}

func (*grantHistoryCommand) kind() string { return "grant_history" }

func (c *grantHistoryCommand) run(ctx context.Context, a *app) error {
	return a.withClient(ctx, func(api *client.Client) error {
		envelope, err := api.GrantHistory(ctx, sallyport.GrantID(c.ID))
		if err != nil {
			return err
		}
		return show(a, envelope, func(p *page, h client.GrantHistory) {
			p.line("%s  %s  %s", p.bold(clean(grantSubject(h.Grant.Grant))), h.Grant.State, p.dim(string(h.Grant.Pin)))
			rows := make([][]string, 0, len(h.Entries))
			for _, e := range h.Entries {
				rows = append(rows, []string{strconv.FormatInt(e.Sequence, 10), when(e.At), string(e.Action), string(e.Actor)})
			}
			p.table([]string{"NO", "AT", "ACTION", "BY"}, rows)
			p.pairs([][2]string{
				{"runs", strconv.Itoa(h.Runs.Count)}, {"first", whenOrNever(h.Runs.FirstAt)}, {"last", whenOrNever(h.Runs.LastAt)},
			}...)
		})
	})
}
