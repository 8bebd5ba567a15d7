package canonical

import (
	"encoding/json"
	"time"

	"github.com/sallyport-dev/sallyport"
)

const opEntry = "canonical.entry"

// TimeFormat is how a time is written in a hashed form: RFC 3339, always in UTC and with six decimals.
const TimeFormat = "2006-01-02T15:04:05.000000Z"

type entryForm struct {
	Sequence     int64                 `json:"sequence"`
	TenantID     sallyport.TenantID    `json:"tenant_id"`
	At           string                `json:"at"`
	Actor        sallyport.PrincipalID `json:"actor,omitempty"`
	Action       sallyport.Action      `json:"action"`
	Entity       string                `json:"entity"`
	ExecutionID  sallyport.ExecutionID `json:"execution_id,omitempty"`
	Detail       json.RawMessage       `json:"detail"`
	PreviousHash sallyport.Digest      `json:"previous_hash"`
}

// EntryHash returns the digest of the RFC 8785 form of entry without its hash member. At is written in TimeFormat; a
// time with a fraction of a microsecond, text that is not UTF-8 and a Detail that is not JSON are INTERNAL errors,
// because what would be stored could not be what was hashed.
func EntryHash(entry sallyport.Entry) (sallyport.Digest, error) {
	if err := checkText(opEntry, string(entry.TenantID), string(entry.Actor), string(entry.Action), entry.Entity,
		string(entry.ExecutionID), string(entry.PreviousHash)); err != nil {
		return "", err
	}
	if entry.At.Nanosecond()%int(time.Microsecond) != 0 {
		return "", fault(opEntry, "the time of an entry is not a whole number of microseconds", nil)
	}
	form, err := JSON(entryForm{
		Sequence: entry.Sequence, TenantID: entry.TenantID, At: entry.At.UTC().Format(TimeFormat), Actor: entry.Actor,
		Action: entry.Action, Entity: entry.Entity, ExecutionID: entry.ExecutionID, Detail: entry.Detail,
		PreviousHash: entry.PreviousHash,
	})
	if err != nil {
		return "", err
	}
	return sallyport.DigestOf(form), nil
}
