package mcp

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	wire "github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// The keys of _meta in results.
const (
	metaCall   = "remit.dev/call"   // the call ID, by which callers can revert the call
	metaTxn    = "remit.dev/txn"    // the transaction ID
	metaStatus = "remit.dev/status" // a tool.Status

	metaMediaType = "remit.dev/mediaType" // of a text
	metaUsage     = "remit.dev/usage"     // of a listed tool: text for the system prompt
	metaRisk      = "remit.dev/risk"      // of a listed tool: low, medium, high
	metaApproval  = "remit.dev/approval"  // of a listed tool: its author advises an approval for each call

	metaOutcome = "remit.dev/outcome" // of a call that did not end done: the reason, for programs
)

// outcomeDetail tells programs why a call did not end done. It never holds
// values of arguments.
type outcomeDetail struct {
	Status      tool.Status   `json:"status"`
	Stage       string        `json:"stage,omitempty"`
	Error       *tool.Problem `json:"error,omitempty"`
	Reasons     []perm.Reason `json:"reasons,omitempty"`
	Revision    string        `json:"revision,omitempty"`
	EffectClass effect.Class  `json:"effect_class,omitempty"`
	Filter      string        `json:"filter,omitempty"`
	Reverted    string        `json:"reverted,omitempty"`
}

// result converts an outcome to the result of tools/call.
func (c *call) result(o tool.Outcome) *wireResult {
	r := newObject(c.revision)
	switch {
	case o.Status == tool.StatusDone && rawresult.Is(o.Result):
		r.take(c.slot.Original(o.Result))
	case o.Status == tool.StatusDone:
		c.content(r, o)
	case (o.Status == tool.StatusFailed || o.Status == tool.StatusUnknown) && !o.Redacted && saysError(c.slot.Left()):
		r.take(c.slot.Left())
	default:
		r.set("content", []sdk.Content{&sdk.TextContent{Text: words(o)}})
	}
	if !o.Status.OK() {
		r.set("isError", true)
	}
	r.note(metaStatus, o.Status)
	if o.Call != "" {
		r.note(metaCall, o.Call)
	}
	if o.Txn != "" {
		r.note(metaTxn, o.Txn)
	}
	if o.Status != tool.StatusDone {
		r.note(metaOutcome, details(o))
	}
	return r
}

// refusal returns the protocol error that a call of an upstream tool ended
// with, or nil. The journal holds the outcome all the same.
func (c *call) refusal(o tool.Outcome) error {
	said := c.slot.Refusal()
	if said == nil || o.Redacted || (o.Status != tool.StatusFailed && o.Status != tool.StatusUnknown) {
		return nil
	}
	return said
}

// words returns the text for the model about a call that did not end done.
func words(o tool.Outcome) string {
	if o.Status == tool.StatusPending && o.Call != "" { // unlike a program that resumes calls, the client must repeat the call
		return "Waiting for approval by a person. Once a person has approved it, make the same call again: " +
			"it goes on with this one and does not run twice. Asking again before that changes nothing."
	}
	if text := strings.ToValidUTF8(o.Text, "\uFFFD"); text != "" {
		return text
	}
	return "It is not known how this call ended. Do not repeat it; look at the state first."
}

func details(o tool.Outcome) outcomeDetail {
	d := outcomeDetail{Status: o.Status, Stage: o.Stage, Error: o.Error, EffectClass: o.EffectClass, Filter: o.Filter, Reverted: o.Reverted}
	if o.Decision != nil {
		d.Reasons, d.Revision = o.Decision.Reasons, o.Decision.Revision
	}
	return d
}

// content sets the content of a call that ended done.
func (c *call) content(r *wireResult, o tool.Outcome) {
	var content []sdk.Content
	if o.Result.Text != "" || o.Result.JSON != nil || len(o.Result.Parts) == 0 {
		text := &sdk.TextContent{Text: strings.ToValidUTF8(o.Text, "\uFFFD")}
		if o.MediaType != "" {
			text.Meta = withMember(nil, metaMediaType, o.MediaType)
		}
		content = append(content, text)
	}
	for _, p := range o.Result.Parts {
		content = append(content, partOf(p))
	}
	r.set("content", content)
	if len(o.Result.JSON) > 0 && !c.tool.IsZero() && len(c.tool.Spec().Output) > 0 {
		r.members["structuredContent"] = o.Result.JSON
	}
}

// partOf returns a result part as content, by its media type.
func partOf(p tool.Part) sdk.Content {
	kind, _, _ := strings.Cut(p.MediaType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch {
	case strings.HasPrefix(kind, "image/"):
		return &sdk.ImageContent{Data: p.Data, MIMEType: kind}
	case strings.HasPrefix(kind, "audio/"):
		return &sdk.AudioContent{Data: p.Data, MIMEType: kind}
	case (strings.HasPrefix(kind, "text/") || kind == "application/json") && utf8.Valid(p.Data):
		return &sdk.TextContent{Text: string(p.Data)}
	}
	return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: partURI, MIMEType: kind, Blob: p.Data}}
}

// take copies the members of an upstream result. The members that belong to the
// client's revision stay, and so does _meta.
func (r *wireResult) take(result json.RawMessage) {
	var members map[string]json.RawMessage
	if wire.Unmarshal(result, &members) != nil {
		return
	}
	for name, value := range members {
		switch name {
		case "resultType":
		case "_meta":
			_ = json.Unmarshal(value, &r.Meta)
		default:
			r.members[name] = value
		}
	}
}

// saysError reports whether an upstream result object is an error.
func saysError(result json.RawMessage) bool {
	var is struct {
		IsError bool `json:"isError"`
	}
	return json.Unmarshal(result, &is) == nil && is.IsError
}

// refused returns the result of a call that the runtime never saw.
func (c *call) refused(why error) *wireResult {
	return c.result(tool.Outcome{
		Tool: c.tool.Name(), Status: tool.StatusInvalid,
		Error: &tool.Problem{What: "the call did not begin", Why: why.Error()},
		Text:  "The call did not begin, and had no effect: " + why.Error(),
	})
}

// uncommitted returns the result of a done call whose transaction could not
// commit.
func (c *call) uncommitted(o tool.Outcome, why error) *wireResult {
	if gate := (*agent.CommitError)(nil); errors.As(why, &gate) {
		return c.result(gate.Outcome(o))
	}
	o.Status = tool.StatusUnknown
	o.Error = &tool.Problem{What: "the transaction of the call could not be committed", Why: why.Error()}
	o.Text = "The call ran, and its transaction could not be committed. Do not repeat it; look at the state first."
	return c.result(o)
}

// partURI is the URI of a part without a name.
const partURI = "remit:part"
