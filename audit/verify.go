package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

const opVerify = "audit.verify"

// maxExportLine bounds a line of an exported trail, in bytes.
const maxExportLine = 4 << 20

var (
	errTrailing = errors.New("data after the JSON value")
	errStop     = errors.New("stop")
)

func sentence(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// Verify checks the caller's tenant's chain, and its tail against outside checkpoints when given. Needs audit:read.
//
// It recomputes the hash of every entry, checks sequence and links, and holds the chain against every stored checkpoint and
// every one of outside. A stored checkpoint whose signature does not hold is a broken trail; one by another key is no evidence
// and is left out, which the message says. Outside may speak of other tenants too; one of this tenant that is not signed by this server's key is
// INVALID_ARGUMENT. Entries that are appended meanwhile do no harm.
func (s *Service) Verify(ctx context.Context, p sallyport.Principal, outside []Checkpoint) (Verdict, error) {
	if err := p.Require(opVerify, sallyport.ScopeAuditRead); err != nil {
		return Verdict{}, err
	}
	own, err := checkOutside(outside, p.TenantID, s.publicKey())
	if err != nil {
		return Verdict{}, err
	}
	for range verifyTries {
		verdict, again, err := s.walk(ctx, p.TenantID, own)
		if err != nil || !again {
			return verdict, err
		}
	}
	return Verdict{}, sallyport.Errorf(opVerify, sallyport.CodeStoreUnavailable, "entries are being removed; try again in a moment")
}

// verifyTries bounds how often Verify begins anew because entries were removed under it.
const verifyTries = 5

// walk checks the whole chain. again says that entries were removed meanwhile, so that the verdict means nothing.
func (s *Service) walk(ctx context.Context, tenant sallyport.TenantID, own []Checkpoint) (_ Verdict, again bool, err error) {
	// Claims about the chain are read before the chain, which only grows but for a removal.
	before, _, err := s.cfg.Store.Pruned(ctx, tenant)
	if err != nil {
		return Verdict{}, false, err
	}
	stored, err := s.cfg.Store.Checkpoints(ctx, tenant)
	if err != nil {
		return Verdict{}, false, err
	}
	logged, err := s.logged(tenant)
	if err != nil {
		return Verdict{}, false, err
	}
	count, _, err := s.cfg.Store.Head(ctx, tenant)
	if err != nil {
		return Verdict{}, false, err
	}
	evidence, foreign, forged := s.judge(tenant, stored)
	walk := newChain(tenant, slices.Concat(evidence, logged, own))
	err = s.cfg.Store.EachEntry(ctx, tenant, func(entry sallyport.Entry) error {
		if !walk.add(entry) {
			return errStop
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return Verdict{}, false, err
	}
	after, _, err := s.cfg.Store.Pruned(ctx, tenant)
	if err != nil {
		return Verdict{}, false, err
	}
	if walk.fault == nil && forged != nil {
		walk.fail(ResultBroken, forged.Count, "the stored checkpoint at entry %d carries a signature that does not hold", forged.Count)
	}
	verdict := walk.verdict(count, own)
	if foreign > 0 {
		verdict.Message += sentence("; %d stored checkpoints are by another key and prove nothing: was the signing key replaced?", foreign)
	}
	return verdict, after.Count != before.Count, nil
}

// logged returns the checkpoint that covers most of tenant's entries in the log beside the database, or nothing. Lines that are no
// checkpoint of this key say nothing, such as one that is being written.
func (s *Service) logged(tenant sallyport.TenantID) ([]Checkpoint, error) {
	if s.cfg.OpenLog == nil || s.publicKey() == nil {
		return nil, nil
	}
	log, err := s.cfg.OpenLog()
	if err != nil {
		return nil, &sallyport.Error{
			Op: opVerify, Code: sallyport.CodeStoreUnavailable, Message: "the checkpoint log of the data folder cannot be read", Err: err,
		}
	}
	defer func() { _ = log.Close() }()
	var most Checkpoint
	name := base64.StdEncoding.EncodeToString(s.publicKey())
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, maxCheckpointLine)
	for lines.Scan() {
		var checkpoint Checkpoint
		if strictjson.Decode(lines.Bytes(), &checkpoint) == nil && checkpoint.TenantID == tenant && checkpoint.PublicKey == name &&
			!checkpoint.Pruned && checkpoint.Count > most.Count {
			most = checkpoint
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return nil, &sallyport.Error{
			Op: opVerify, Code: sallyport.CodeStoreUnavailable, Message: "the checkpoint log of the data folder cannot be read", Err: err,
		}
	}
	if most.Count == 0 || !most.Holds(s.publicKey()) {
		return nil, nil
	}
	return []Checkpoint{most}, nil
}

// judge splits stored checkpoints into those that are evidence, how many another key has signed, and the first whose signature
// does not hold.
func (s *Service) judge(tenant sallyport.TenantID, stored []Checkpoint) (evidence []Checkpoint, foreign int, forged *Checkpoint) {
	key := s.publicKey()
	for _, checkpoint := range stored {
		switch {
		case key != nil && checkpoint.TenantID == tenant && checkpoint.Holds(key):
			evidence = append(evidence, checkpoint)
		case checkpoint.Holds(nil):
			foreign++
		case forged == nil:
			forged = &checkpoint
		}
	}
	return evidence, foreign, forged
}

// checkOutside returns those checkpoints that speak of tenant, all proven to be by one key: the given one, or when that is
// nil the one that the first of them names.
func checkOutside(outside []Checkpoint, tenant sallyport.TenantID, key ed25519.PublicKey) ([]Checkpoint, error) {
	var own []Checkpoint
	for _, checkpoint := range outside {
		if checkpoint.TenantID != tenant {
			continue
		}
		held := checkpoint.Holds(key)
		if key == nil && len(own) > 0 {
			held = held && checkpoint.PublicKey == own[0].PublicKey
		}
		if !held || checkpoint.Count < 1 {
			return nil, sallyport.Errorf(opVerify, sallyport.CodeInvalidArgument,
				"the given checkpoint of entry %d is not signed by the key of this trail, so it proves nothing", checkpoint.Count)
		}
		own = append(own, checkpoint)
	}
	return own, nil
}

// Evidence is what an exported trail is held against.
type Evidence struct {
	// Checkpoints from outside the database; those of other tenants are left out. Empty proves no tail.
	Checkpoints []Checkpoint
	// PublicKey that must have signed them; nil means the one that they name, which must be the same in all.
	PublicKey ed25519.PublicKey
}

// VerifyExport checks an exported trail, one entry as JSON per line, as Export writes it, without any database. A signed statement
// about entries that were removed may stand before the first entry that is left, or, where exports were joined, where it says nothing
// new. A line that is neither, or has a field that they have not, is a broken trail. It returns an error only when r cannot be read or
// evidence is not what it claims to be (INVALID_ARGUMENT).
func VerifyExport(r io.Reader, evidence Evidence) (Verdict, error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	var walk *chain
	var own []Checkpoint
	named := false // a statement was believed by the key that it names itself
	for number := 1; ; number++ {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, errTooLong) {
			return Verdict{}, &sallyport.Error{Op: opVerify, Code: sallyport.CodeInternal, Err: err}
		}
		var entry sallyport.Entry
		bad := err != nil || strictjson.Decode(line, &entry) != nil
		proof, isProof := statement(line, bad && err == nil)
		if isProof {
			entry.TenantID = proof.TenantID
		}
		if walk == nil {
			if own, err = checkOutside(evidence.Checkpoints, entry.TenantID, evidence.PublicKey); err != nil {
				return Verdict{}, err
			}
			walk = newChain(entry.TenantID, own)
		}
		if isProof {
			key := evidence.PublicKey
			if key == nil && len(own) > 0 {
				key, _ = base64.StdEncoding.DecodeString(own[0].PublicKey)
			}
			named = named || key == nil
			if !walk.believe(proof, key) {
				break
			}
			continue
		}
		if bad {
			walk.fail(ResultBroken, walk.checked+1, "line %d of the export is not an audit entry", number)
		}
		if !walk.add(entry) {
			break
		}
	}
	if walk == nil {
		return emptyExport(evidence)
	}
	verdict := walk.verdict(0, own)
	if named && verdict.PrunedThrough > 0 && verdict.Result == ResultValid {
		verdict.Message += "; the statement about it is signed by the key that it names: name the key of the trail to be sure of it"
	}
	return verdict, nil
}

// statement reads a line that is a signed statement about a removal.
func statement(line []byte, look bool) (proof Checkpoint, ok bool) {
	return proof, look && strictjson.Decode(line, &proof) == nil && proof.Pruned
}

// emptyExport judges an export without any line. It names no tenant, so a checkpoint of any tenant contradicts it.
func emptyExport(evidence Evidence) (Verdict, error) {
	if len(evidence.Checkpoints) == 0 {
		return newChain("", nil).verdict(0, nil), nil
	}
	tenant := evidence.Checkpoints[0].TenantID
	own, err := checkOutside(evidence.Checkpoints, tenant, evidence.PublicKey)
	if err != nil {
		return Verdict{}, err
	}
	return newChain(tenant, own).verdict(0, own), nil
}

var errTooLong = errors.New("the line is too long")

// readLine returns the next line without its end; a last line needs none. io.EOF means that there is no more.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxExportLine:
			return nil, errTooLong
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0, err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		default:
			return nil, err
		}
	}
}
