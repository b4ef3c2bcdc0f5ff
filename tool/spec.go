package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// Execute is a tool's code. It must be safe for concurrent use and keep nothing
// between calls. The input is canonical JSON that satisfies the input schema.
// For a free-form tool it is one JSON string.
//
// An error says that the call failed. The tool's confinement, NoEffect or its
// Verify can prove that it had no effect. Otherwise its effect is unknown. An
// error made with Blocked says that the tool itself refused.
type Execute func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (Result, error)

// Spec is the literal that a Tool is made from. Only Name and Execute are
// required. Every omitted field takes the strictest meaning.
type Spec struct {
	Name        string   // lower-case letters, digits and single or double underscores between them, such as write_pair; at most 64
	Description string   // for the model; one or two sentences
	Usage       string   // for the system prompt: how and when to use the tool, beside its description; see Registry.Usage
	Version     string   // version of the tool, chosen by its author
	Tags        []string // categories, for policies and lists
	Deprecated  string   // what to use instead; models and users see it with each call. Empty: not deprecated

	Input  json.RawMessage // JSON Schema 2020-12 of the input; nil without Params: one free-form string
	Params Params          // replaces Input: the arguments one by one; the frozen tool has them as Input
	Output json.RawMessage // JSON Schema of Result.JSON; nil: not checked

	// OutputContent says how trusted and how confidential the output is. The
	// session gets the labels untrusted and private before the first call,
	// unless the content is trusted and public. nil: unspecified, and policies
	// decide by the accesses of calls.
	OutputContent *provenance.Content
	// Roles say what the arguments do, for policies that read where their values
	// come from. An argument without a role says who, where, which or how much.
	Roles provenance.Roles

	// Needs bounds the accesses of every call. An access can hold parameters:
	// `write file://workspace/{path}` is the file that argument "path" names,
	// as a literal. The runtime authorizes an access without a wildcard before
	// the call. An access with a wildcard only bounds what the call may request
	// while it runs.
	Needs []perm.ResourceAccess
	// AccessFor returns the exact accesses of one call, if parameters do not
	// suffice. Each must lie within Needs. It must have no effects.
	AccessFor func(in json.RawMessage) ([]perm.ResourceAccess, error)

	// Bound returns what one call may request while it runs beside its exact
	// accesses, if some inputs need less than others. The runtime omits
	// accesses outside Needs. nil: Needs. It must have no effects.
	Bound func(in json.RawMessage) ([]perm.ResourceAccess, error)

	// ParseScript returns what the script of one call runs, for policies. It
	// must only read. nil: calls have no script.
	ParseScript func(in json.RawMessage) *perm.ScriptFacts

	// Counters map a sum of the session to the argument that each call adds to
	// it. The argument is a number that is not negative; an omitted one adds
	// nothing. Policies read a sum as input.session.tools[name].sums[counter].
	// A revert does not lower a sum.
	Counters map[string]string

	EffectClass effect.Class // empty: undeclared, counts as pivot
	// ClassOf returns the class of one call, if some inputs have a milder
	// effect than others. Empty: EffectClass. It must have no effects.
	ClassOf     func(in json.RawMessage) effect.Class
	Confinement Confinement // empty: trusted
	Destination Destination // empty: model-chosen

	// Coverage is how much of a call's effect is known. Empty: confined for a
	// tool with handles or in the sandbox, declared for a trusted one. An
	// author can only lower it.
	Coverage effect.Coverage
	// Observed are the names of the roots whose files Execute compares before
	// and after each call, for a tool with coverage observed.
	Observed []string

	Execute     Execute
	Verify      verify.Verifier // nil: the verdict is cannot_tell
	Revert      Revert          // nil: the runtime reverts only changes made through handles
	UndoVersion string          // the runtime finds Revert again by (Name, UndoVersion)

	// Settings are the arguments that configure the tool before the runtime
	// offers it; package tool/settings reads them from files. CheckSettings is
	// the tool's own check of them: a warning does not prevent the
	// configuration, an error does. It must have no effects.
	Settings      Params
	CheckSettings func(ctx context.Context, settings json.RawMessage) (warnings []string, err error)

	// The following fields say which sessions see the tool, beside
	// Display.Surfaces; see perm.ClientFacts. A call in another session is
	// denied.
	Capabilities     []string // that the model must have
	MinProviderTrust int      // lowest trust in the model's provider, in thousandths; 0: none

	// DisabledReason says why the tool is hidden from every session for now.
	// The tool is not listed, and a call of it is denied with this reason.
	// Empty: the tool is enabled. Earlier calls can still be reverted.
	DisabledReason string

	Provenance provenance.Source
	Hints      Hints
	Display    Display

	parts     []Tool // parts of a composed tool: Needs is then only a bound, and AccessFor returns the accesses to authorize before a call
	holds     string // name of the state that calls of a session share; empty: none
	sandboxed bool   // this module guarantees that Execute only runs a program
}

// Display holds texts for people. It changes no right and is not part of the
// digest, so a translated name does not make another tool. Surfaces hides the
// tool from other sessions, where it is neither listed nor run. It gives the
// tool to no session.
type Display struct {
	Names        map[string]string // by BCP 47 language tag, such as "de" or "pt-BR"
	Descriptions map[string]string
	Icon         string   // a name, path or URL that the host program understands
	Surfaces     []string // the kinds of session that see it, such as "chat"; nil: all
}

// Hints help the runtime and policies, and change no right.
type Hints struct {
	Idempotent bool          // repeating the same call has no further effect
	Risk       perm.Risk     // how much harm a call can do; empty: unspecified
	Approval   bool          // the author advises an approval of each call; only a policy asks
	Concurrent bool          // calls of one turn to concurrent tools do not need each other: agent.Loop runs them at once
	Timeout    time.Duration // 0: the runtime's default
	Sensitive  []string      // names of arguments that remit shows nobody; the journal holds them as plain text
}

// Confinement says how a tool is held to its needs.
type Confinement string

// The kinds of confinement, weakest first.
const (
	Trusted Confinement = "trusted" // not at all: Go code in the host program's process
	Handles Confinement = "handles" // by its author's claim that it acts only through handles
	Sandbox Confinement = "sandbox" // by the operating system
)

// Destination says who receives what a tool sends.
type Destination string

// The destinations, mildest first.
const (
	NoDestination Destination = "none"
	Configured    Destination = "configured"   // a service that the host program configured
	ThirdParty    Destination = "third_party"  // another party, fixed by the tool
	ModelChosen   Destination = "model_chosen" // named by the model in its arguments
)

// Revert reverts one call. It depends only on journaled data and can run in
// another process. After a crash the runtime calls it again with the same
// RevertKey; it must then do nothing twice.
type Revert func(ctx context.Context, rc RevertContext) error

// RevertContext is the input of a Revert.
type RevertContext struct {
	Input      json.RawMessage // as executed
	Output     json.RawMessage // of the result; null if the result was lost
	ExecutedAt time.Time
	Notes      map[string]json.RawMessage // what Execute noted
	Changes    []effect.Change            // what Execute did through handles; the runtime reverts them itself
	Key        string                     // operation key of the call
	RevertKey  string                     // key of this revert, the same for each attempt

	tc ctxperm.ToolContext
}

// ToolContext returns the context that opens handles under the rights that the
// call was granted when it was allowed. A later policy cannot remove them.
func (rc RevertContext) ToolContext() ctxperm.ToolContext { return rc.tc }

// Args is an input as a Go map, for Invoke.
type Args map[string]any
