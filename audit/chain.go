package audit

import (
	"crypto/ed25519"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/canonical"
)

// The results of a Verdict.
const (
	ResultValid       = "valid"
	ResultBroken      = "broken"       // an entry is not what was written
	ResultGap         = "gap"          // an entry between others is missing
	ResultTailMissing = "tail_missing" // entries at the end are missing
)

// How far a Verdict proves that nothing was cut off at the end.
const (
	TailProven       = "proven"        // a checkpoint from outside covers the last entry
	TailPartlyProven = "partly_proven" // a checkpoint from outside covers the entries up to its count
	TailNotProvable  = "not_provable"  // no checkpoint from outside was given
)

// chain walks the entries of one tenant in sequence order and stops at the first fault. It recomputes every hash and holds
// every entry against the checkpoints that speak of it.
type chain struct {
	tenant sallyport.TenantID
	// heads maps a count to what signed checkpoints say the hash of that entry is.
	heads map[int64][]sallyport.Digest
	// pruned maps a count to the hash of that entry, where a signed statement says that it and all before were removed.
	pruned   map[int64]sallyport.Digest
	from     int64 // the last entry that was removed
	checked  int64
	previous sallyport.Digest
	covered  int64 // the largest count whose checkpoint held
	fault    *Verdict
}

func newChain(tenant sallyport.TenantID, checkpoints []Checkpoint) *chain {
	c := &chain{tenant: tenant, heads: map[int64][]sallyport.Digest{}, pruned: map[int64]sallyport.Digest{}}
	for _, checkpoint := range checkpoints {
		if checkpoint.TenantID == tenant {
			if checkpoint.Pruned {
				c.pruned[checkpoint.Count] = checkpoint.Head
			}
			c.heads[checkpoint.Count] = append(c.heads[checkpoint.Count], checkpoint.Head)
		}
	}
	return c
}

// add checks the next entry and reports whether the chain is good so far.
func (c *chain) add(entry sallyport.Entry) bool {
	if c.fault != nil {
		return false
	}
	if c.checked == 0 && entry.Sequence > 1 && !c.begin(entry.Sequence) {
		return false
	}
	want := c.checked + 1
	hash, err := canonical.EntryHash(entry)
	switch {
	case entry.Sequence > want:
		return c.fail(ResultGap, want, "entry %d is missing: the next one there is %d", want, entry.Sequence)
	case entry.Sequence < want:
		return c.fail(ResultBroken, want, "where entry %d should be there is one numbered %d", want, entry.Sequence)
	case entry.TenantID != c.tenant:
		return c.fail(ResultBroken, want, "entry %d belongs to another tenant", want)
	case err != nil:
		return c.fail(ResultBroken, want, "entry %d cannot be hashed, so it is not what was written", want)
	case !entry.Hash.Equal(hash):
		return c.fail(ResultBroken, want, "the content of entry %d is not what its hash says", want)
	case entry.PreviousHash != c.previous:
		return c.fail(ResultBroken, want, "entry %d does not follow the entry before it", want)
	}
	for _, head := range c.heads[want] {
		if !entry.Hash.Equal(head) {
			return c.fail(ResultBroken, want, "entry %d, or one before it, was replaced: a signed checkpoint says so", want)
		}
		c.covered = want
	}
	c.checked, c.previous = want, entry.Hash
	return true
}

// begin puts the walk behind what was removed before the entry first, when statements say so. The newest of them counts: what is
// missing behind it is a gap.
func (c *chain) begin(first int64) bool {
	for count := range c.pruned {
		if count < first {
			c.from = max(c.from, count)
		}
	}
	if c.from == 0 {
		return true // nobody said so: the first entry is missing
	}
	for _, head := range c.heads[c.from] {
		if head != c.pruned[c.from] {
			return c.fail(ResultBroken, c.from, "the statement that entries up to %d were removed contradicts a signed checkpoint", c.from)
		}
	}
	c.checked, c.previous, c.covered = c.from, c.pruned[c.from], c.from
	return true
}

// believe takes a statement about a removal that stands in an export, signed by key. Behind entries it must say what they say.
func (c *chain) believe(proof Checkpoint, key ed25519.PublicKey) bool {
	switch {
	case c.fault != nil:
		return false
	case proof.TenantID != c.tenant || proof.Count < 1 || !proof.Holds(key):
		return c.fail(ResultBroken, c.checked+1, "the statement that entries up to %d were removed is not signed by the key of the trail", proof.Count)
	case c.checked > 0 && (c.checked != proof.Count || c.previous != proof.Head):
		return c.fail(ResultBroken, c.checked+1, "a statement that entries up to %d were removed stands behind entry %d", proof.Count, c.checked)
	case c.checked == 0:
		c.pruned[proof.Count] = proof.Head
		c.heads[proof.Count] = append(c.heads[proof.Count], proof.Head)
	}
	return true
}

func (c *chain) fail(result string, sequence int64, format string, args ...any) bool {
	c.fault = &Verdict{Result: result, Sequence: sequence, Message: sentence(format, args...)}
	return false
}

// verdict closes the walk. AtLeast is how many entries the store itself claims; outside are the checkpoints that came from
// outside.
func (c *chain) verdict(atLeast int64, outside []Checkpoint) Verdict {
	for count := range c.heads {
		atLeast = max(atLeast, count)
	}
	for count := range c.pruned {
		atLeast = max(atLeast, count+1) // the removal itself is on record, behind what it removed
	}
	if c.fault == nil && c.checked < atLeast {
		c.fail(ResultTailMissing, c.checked+1, "the trail ends at entry %d, and there were at least %d", c.checked, atLeast)
	}
	verdict := Verdict{Result: ResultValid, Message: sentence("all %d entries are whole and in order", c.checked-c.from)}
	if c.from > 0 {
		verdict.Message += sentence("; pruned through %d, proven by checkpoint", c.from)
	}
	if c.fault != nil {
		verdict = *c.fault
	}
	verdict.Checked, verdict.CheckpointCount, verdict.PrunedThrough = c.checked-c.from, c.covered, c.from
	proven := int64(0)
	for _, checkpoint := range outside {
		if checkpoint.Count <= c.checked && checkpoint.Count >= c.from {
			proven = max(proven, checkpoint.Count)
		}
	}
	var addition string
	switch {
	case proven == 0:
		verdict.Tail = TailNotProvable
		addition = "; the tail is not provable without a checkpoint kept outside"
	case proven == c.checked && c.fault == nil:
		verdict.Tail = TailProven
		addition = "; a checkpoint kept outside proves that none is missing at the end"
	default:
		verdict.Tail = TailPartlyProven
		addition = sentence("; checkpoints kept outside prove the first %d", proven)
	}
	if c.fault == nil {
		verdict.Message += addition
	}
	return verdict
}
