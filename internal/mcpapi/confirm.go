package mcpapi

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

// confirmKey is the question among the inputs of a call, and the member of its answer.
const confirmKey = "confirm"

// confirmSchema is what the client asks its user.
const confirmSchema = `{"type":"object","properties":{"confirm":{"type":"boolean","title":"Run this script",
	"description":"Yes lets exactly this call run once."}},"required":["confirm"]}`

// askState travels through the client while its user is asked. It is signed, because the client is not trusted with it: it says for whom,
// for which request, for which bytes and until when the answer holds. That it holds once is kept in the database.
type askState struct {
	ID        sallyport.ConfirmationID `json:"id"`
	Tenant    sallyport.TenantID       `json:"tenant"`
	Principal sallyport.PrincipalID    `json:"principal"`
	Request   sallyport.Digest         `json:"request"`
	Revision  sallyport.Digest         `json:"revision"`
	Expires   time.Time                `json:"expires"`
	// Call is the digest of the arguments that the user was shown.
	Call sallyport.Digest `json:"call"`
}

// callDigest is over the arguments of a call without their blanks.
func callDigest(c *call) sallyport.Digest {
	var args bytes.Buffer
	_ = json.Compact(&args, c.args) // it was decoded before
	return sallyport.DigestOf(args.Bytes())
}

// newStateKey makes a key for one process. A server that was started anew asks again.
func newStateKey() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // never fails
	return key
}

func (a *API) sign(text string) string {
	mac := hmac.New(sha256.New, a.stateKey)
	mac.Write([]byte("sallyport.mcp.confirm.v1\n" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (a *API) seal(state askState) (string, error) {
	form, err := json.Marshal(state)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(form)
	return text + "." + a.sign(text), nil
}

var errRequestState = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request state is not one that this server made for you, or it is too old; make the call without it"}

// open returns the state that seal made for p and that is not over.
func (a *API) open(sealed string, p sallyport.Principal) (askState, error) {
	var state askState
	text, signature, found := strings.Cut(sealed, ".")
	if !found || !hmac.Equal([]byte(a.sign(text)), []byte(signature)) {
		return state, errRequestState
	}
	form, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || strictjson.Decode(form, &state) != nil {
		return state, errRequestState
	}
	if state.Tenant != p.TenantID || state.Principal != p.ID || !time.Now().Before(state.Expires) {
		return state, errRequestState
	}
	return state, nil
}

// canAsk reports whether the client can show its user a form.
func canAsk(can *mcp.ClientCapabilities) bool {
	return can != nil && can.Elicitation != nil && (can.Elicitation.Form != nil || can.Elicitation.URL == nil)
}

// ask turns the refusal of a run that wants a person's yes into a question to the user of a client that can ask; nil when there is none.
func (a *API) ask(c *call, refused *sallyport.PublicError) *mcp.CallToolResult {
	if !a.cfg.ConfirmInClient || refused == nil || refused.Code != sallyport.CodeConfirmationRequired || !canAsk(c.can) {
		return nil
	}
	id, _ := refused.Details["confirmation_id"].(sallyport.ConfirmationID)
	request, _ := refused.Details["request_digest"].(sallyport.Digest)
	revision, _ := refused.Details["revision_digest"].(sallyport.Digest)
	expires, _ := refused.Details["expires_at"].(time.Time)
	if id == "" || request == "" || revision == "" {
		return nil
	}
	state, err := a.seal(askState{id, c.principal.TenantID, c.principal.ID, request, revision, expires, callDigest(c)})
	if err != nil {
		return nil
	}
	var args executeArguments
	_ = strictjson.Decode(c.args, &args) // it was decoded before
	var message strings.Builder
	fmt.Fprintf(&message, "Run %s of the skill %s?\nrevision %s", shorten(args.ScriptPath, 200), shorten(args.Slug+args.SkillID, 100), revision)
	if len(args.InputArgs) > 0 {
		message.WriteString("\ninput_args: " + shorten(string(a.cfg.Mask(json.RawMessage(args.InputArgs))), 1000))
	}
	if len(args.Argv) > 0 {
		fmt.Fprintf(&message, "\n%d command line arguments: %s", len(args.Argv), shorten(strings.Join(a.cfg.MaskArgv(args.Argv), " "), 500))
	}
	for _, file := range args.Files {
		message.WriteString("\nfile: " + shorten(file.Name, 100))
	}
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{confirmKey: &mcp.ElicitParams{Mode: "form", Message: shorten(message.String(), 4000), RequestedSchema: json.RawMessage(confirmSchema)}},
		RequestState:  state,
	}
}

// shorten cuts s for a person to read, and takes out what would make it look like something else.
func shorten(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '\uFFFD'
		}
		return r
	}, s)
	if kept, left := cut(s, most); left > 0 {
		return kept + "..."
	}
	return s
}

// answered carries the user's answer to the run, before the call is made again. The error is one of the protocol, for a state that is
// not ours; what the user said no to is the refusal.
func (a *API) answered(ctx context.Context, c *call) (refusal error, err error) {
	if c.state == "" {
		return nil, nil
	}
	state, err := a.open(c.state, c.principal)
	if err != nil {
		return nil, err
	}
	answer, ok := c.inputs[confirmKey].(*mcp.ElicitResult)
	if !ok || answer == nil || !state.Call.Equal(callDigest(c)) {
		return nil, nil // the call asks again: nobody was shown what it would run
	}
	said, _ := answer.Content[confirmKey].(bool)
	yes := answer.Action == "accept" && said
	if answer.Action == "cancel" {
		return declined("nobody answered", state.ID), nil
	}
	if _, err := a.cfg.Runs.DecideInClient(ctx, c.principal, state.ID, state.Request, state.Revision, yes); err != nil {
		return err, nil
	}
	if !yes {
		return declined("the user said no", ""), nil
	}
	return nil, nil
}

func declined(why string, id sallyport.ConfirmationID) error {
	message := "a person must confirm this run, and " + why
	if id != "" {
		message += "; somebody else with the scope grants:write can, with: sallyport approve " + string(id)
	}
	return sallyport.Errorf("mcp.execute", sallyport.CodeConfirmationRequired, "%s", message)
}
