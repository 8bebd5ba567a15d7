package sallyport

import (
	"encoding/json"
	"time"
)

// Action names what an audit entry is about.
type Action string

// The actions.
const (
	ActionScriptRun      Action = "script.run"      // durable before the process starts
	ActionScriptFinished Action = "script.finished" // pairs with script.run, by execution id
	ActionScriptDenied   Action = "script.denied"   // a gate said no
	ActionGrantIssue     Action = "grant.issue"     // written before the grant is stored
	ActionGrantRevoke    Action = "grant.revoke"
	// A question to a person whether a run may begin, and the answer; each is stored with its entry in one transaction.
	ActionConfirmationAsk     Action = "confirmation.ask"
	ActionConfirmationApprove Action = "confirmation.approve"
	ActionConfirmationDeny    Action = "confirmation.deny"
	ActionSkillSave           Action = "skill.save"
	ActionSkillPublish        Action = "skill.publish"
	ActionSkillArchive        Action = "skill.archive"
	ActionRevisionDelete      Action = "revision.delete"
	ActionSkillDelete         Action = "skill.delete" // archived until it is purged
	ActionSkillPurge          Action = "skill.purge"
	ActionBackupCreate        Action = "backup.create" // written before the copy is made
	ActionRecordsPurge        Action = "records.purge" // written before the first row goes
	ActionSkillRestore        Action = "skill.restore"
	ActionKeyCreate           Action = "key.create"
	ActionKeyRevoke           Action = "key.revoke"
	ActionSecretSet           Action = "secret.set" // the name, never the value
	ActionSecretRemove        Action = "secret.remove"
	ActionSecretRotate        Action = "secret.rotate"  // the key that encrypts the tenant's secrets
	ActionAuditPrune          Action = "audit.prune"    // written before old entries are removed
	ActionGrantExpiring       Action = "grant.expiring" // once per grant, ahead of its end
	ActionTenantCreate        Action = "tenant.create"  // this and the following are written before what they say is stored
	ActionTenantDisable       Action = "tenant.disable"
	ActionTenantEnable        Action = "tenant.enable"
	ActionTeamCreate          Action = "team.create"
	ActionTeamRemove          Action = "team.remove"
	ActionMemberAdd           Action = "member.add"
	ActionMemberRemove        Action = "member.remove"
	ActionRoleSet             Action = "role.set"
	ActionRoleRemove          Action = "role.remove"
	ActionPrincipalSet        Action = "principal.set"
	ActionPolicySet           Action = "policy.set"
)

// Entry is one line of a tenant's audit trail. PreviousHash and Hash chain the entries: Hash is the digest of
// the RFC 8785 form of the entry without Hash.
type Entry struct {
	// Sequence counts 1, 2, ... per tenant without a hole.
	Sequence int64       `json:"sequence"`
	TenantID TenantID    `json:"tenant_id"`
	At       time.Time   `json:"at"` // UTC, whole microseconds
	Actor    PrincipalID `json:"actor,omitempty"`
	Action   Action      `json:"action"`
	// Entity is what it is about: "slug", "slug/script" or an id.
	Entity      string      `json:"entity"`
	ExecutionID ExecutionID `json:"execution_id,omitempty"`
	// Detail is a JSON object; secrets in it are masked before it gets here.
	Detail       json.RawMessage `json:"detail"`
	PreviousHash Digest          `json:"previous_hash"` // empty for the first entry
	Hash         Digest          `json:"hash"`
}
