package mcp

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	wire "github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/mcp/internal/rawresult"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// What results say in _meta.
const (
	metaCall   = "remit.dev/call"   // the id of the call, by which it can be taken back
	metaTxn    = "remit.dev/txn"    // the id of its transaction
	metaStatus = "remit.dev/status" // a tool.Status

	metaMediaType = "remit.dev/mediaType" // of a text
	metaUsage     = "remit.dev/usage"     // of a tool in a list: for the system prompt
	metaRisk      = "remit.dev/risk"      // of a tool in a list: low, medium, high
	metaApproval  = "remit.dev/approval"  // of a tool in a list: its author advises that a person approves each call

	metaOutcome = "remit.dev/outcome" // of a call that did not end done: why, for programs
)

// outcomeDetail is what a program is told of a call that did not end done. It never holds the values of arguments.
type outcomeDetail struct {
	Status      tool.Status   `json:"status"`
	Stage       string        `json:"stage,omitempty"`
	Error       *tool.Problem `json:"error,omitempty"`
	Reasons     []perm.Reason `json:"reasons,omitempty"`
	Revision    string        `json:"revision,omitempty"`
	EffectClass effect.Class  `json:"effect_class,omitempty"`
	Filter      string        `json:"filter,omitempty"`
	TakenBack   string        `json:"taken_back,omitempty"`
}

// result is the result of tools/call that an outcome becomes.
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
	if o.Status.IsError() {
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

// refusal is the error of the protocol that a call of another server's tool ended with, nil where it ended otherwise. The
// outcome is on the journal all the same.
func (c *call) refusal(o tool.Outcome) error {
	said := c.slot.Refusal()
	if said == nil || o.Redacted || (o.Status != tool.StatusFailed && o.Status != tool.StatusUnknown) {
		return nil
	}
	return said
}

// words are what a model is told of a call that did not end done.
func words(o tool.Outcome) string {
	if o.Status == tool.StatusPending && o.Call != "" { // here, unlike in a program that resumes calls, the client has to come again
		return "Waiting for approval by a person. Once a person has approved it, make the same call again: " +
			"it goes on with this one and does not run twice. Asking again before that changes nothing."
	}
	if text := strings.ToValidUTF8(o.Text, "\uFFFD"); text != "" {
		return text
	}
	return "It is not known how this call ended. Do not repeat it; look at the state first."
}

func details(o tool.Outcome) outcomeDetail {
	d := outcomeDetail{Status: o.Status, Stage: o.Stage, Error: o.Error, EffectClass: o.EffectClass, Filter: o.Filter, TakenBack: o.Reverted}
	if o.Decision != nil {
		d.Reasons, d.Revision = o.Decision.Reasons, o.Decision.Revision
	}
	return d
}

// content is what a call that was done returns.
func (c *call) content(r *wireResult, o tool.Outcome) {
	var content []sdk.Content
	if o.Result.Text != "" || o.Result.JSON != nil || len(o.Result.Parts) == 0 {
		text := &sdk.TextContent{Text: strings.ToValidUTF8(o.Text, "\uFFFD")}
		if o.MediaType != "" {
			text.Meta = noted(nil, metaMediaType, o.MediaType)
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

// partOf is a part of a result by its media type.
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

// take makes the members of another server's result those of this one. What it is by the revision that the client speaks
// stays, and its _meta is kept.
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

// saysError reports whether a result object of another server is an error.
func saysError(result json.RawMessage) bool {
	var is struct {
		IsError bool `json:"isError"`
	}
	return json.Unmarshal(result, &is) == nil && is.IsError
}

// refused is the result of a call that the runtime never saw.
func (c *call) refused(why error) *wireResult {
	return c.result(tool.Outcome{
		Tool: c.tool.Name(), Status: tool.StatusInvalid,
		Error: &tool.Problem{What: "the call did not begin", Why: why.Error()},
		Text:  "The call did not begin, and had no effect: " + why.Error(),
	})
}

// uncommitted is the result of a call that was done in a transaction which could not be committed.
func (c *call) uncommitted(o tool.Outcome, why error) *wireResult {
	o.Status = tool.StatusUnknown
	o.Error = &tool.Problem{What: "the transaction of the call could not be committed", Why: why.Error()}
	o.Text = "The call ran, and its transaction could not be committed. Do not repeat it; look at the state first."
	return c.result(o)
}

// partURI is that of a part which has no name of its own.
const partURI = "remit:part"
