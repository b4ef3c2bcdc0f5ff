package tool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/callstate"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/verify"
)

// Execute is a tool's code. It is safe for concurrent use and keeps nothing
// between calls. The input is canonical JSON that satisfies the input schema;
// for a free-form tool it is one JSON string.
//
// An error says that the call failed; whether it had effects is proven by the
// tool's confinement, by NoEffect, or by its Verify, else it is unknown. An error
// made with Blocked says that the tool itself refused.
type Execute func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (Result, error)

// Spec is the literal that a Tool is made from. Only Name and Execute are
// required; every field that is left out takes the strictest meaning.
type Spec struct {
	Name        string   // lower-case letters, digits and single or double underscores between them, such as write_pair; at most 64
	Description string   // for the model; one or two sentences
	Usage       string   // for the system prompt: how and when to use the tool, beside its description; see Registry.Usage
	Version     string   // the author's own
	Tags        []string // categories, for policies and lists
	Deprecated  string   // what to do instead; models and their people are told with each call. Empty: it is not

	Input  json.RawMessage // JSON Schema 2020-12 of the input; nil, and no Params: one free-form string
	Params Params          // instead of Input: the arguments one by one; the frozen tool has them as Input
	Output json.RawMessage // JSON Schema of Result.JSON; nil: not checked

	// OutputContent says how far what calls return can be believed, and who may see it: the session gets the labels untrusted and private
	// before the first call, unless it is trusted and public. nil: nothing is said, and policies go by what calls touch.
	OutputContent *provenance.Content

	// Needs is the most that any call may touch. An access may hold parameters:
	// `write file://workspace/{path}` is the file that argument "path" names, as
	// a literal. One without a wildcard is asked for before the call; one with a
	// wildcard only bounds what the call may ask for while it runs.
	Needs []perm.ResourceAccess
	// AccessFor returns the exact accesses of one call, where parameters do not
	// suffice. Each must lie within Needs. It only computes: no effects.
	AccessFor func(in json.RawMessage) ([]perm.ResourceAccess, error)

	// Bound returns what one call may ask for while it runs beside its exact accesses,
	// where some inputs need less than others. What lies outside Needs is left out; nil is
	// Needs. It only computes: no effects.
	Bound func(in json.RawMessage) ([]perm.ResourceAccess, error)

	// ParseScript tells a policy what the script of one call would run. It only reads; nil
	// where calls have none.
	ParseScript func(in json.RawMessage) *perm.ScriptFacts

	// Counters name sums of the session and the argument that each call adds to
	// it: a number that is not negative; one that is left out adds nothing.
	// Policies read a sum as input.session.tools[name].sums[counter]. What may
	// have been spent stays so, whatever is taken back.
	Counters map[string]string

	EffectClass effect.Class // empty: undeclared, counts as pivot
	// ClassOf returns the class of one call, where some inputs have a milder effect
	// than others; empty is EffectClass. It only computes: no effects.
	ClassOf     func(in json.RawMessage) effect.Class
	Confinement Confinement // empty: trusted
	Destination Destination // empty: model-chosen

	// Coverage is how much of what a call does is known. Empty: confined for a tool with handles or in the sandbox, and declared for a
	// trusted one. An author can only lower it.
	Coverage effect.Coverage
	// Observed are the names of the roots whose files Execute compares before and after each call, of a tool with coverage observed.
	Observed []string

	Execute     Execute
	Verify      verify.Verifier // nil: the verdict is cannot_tell
	Revert      Revert          // nil: only changes made through handles are undone
	UndoVersion string          // Revert is found again by (Name, UndoVersion)

	// Settings are what the tool is configured with before it is offered; package
	// tool/settings reads them from files. CheckSettings is the tool's own check of
	// them: warnings stand in nobody's way, an error means that it is not configured. It
	// has no effects.
	Settings      Params
	CheckSettings func(ctx context.Context, settings json.RawMessage) (warnings []string, err error)

	// Which sessions see the tool, beside Display.Surfaces; see perm.ClientFacts. A call in another session is denied.
	Capabilities     []string // that the model must have
	MinProviderTrust int      // the least that the model's provider has to be trusted, in thousandths; 0: not at all

	// DisabledReason says why no session sees the tool for now: it is not listed, and a call of it is denied with this. Empty:
	// nobody withholds it. Undo of earlier calls goes on.
	DisabledReason string

	Provenance provenance.Source
	Hints      Hints
	Display    Display

	parts     []Tool // of a composed tool: Needs is only a bound then, and what is asked before a call Access says
	holds     string // the name under which calls of a session find what the last one left; empty: nothing is held
	sandboxed bool   // this module vouches that all that Execute does is to run a program
}

// InSandbox says that all that Execute does is to run a program in the sandbox.
// Only this module can: see package tool/builtin/process for a tool of your own.
func (s Spec) InSandbox(k callstate.ModuleKey) Spec {
	s.sandboxed = k.Valid()
	s.Confinement = Sandbox
	return s
}

// Display is for people. It changes no right and is not part of the digest: a name that
// was translated makes no other tool of it. Surfaces keeps the tool from other sessions,
// where it is neither listed nor run, and gives it to none.
type Display struct {
	Names        map[string]string // by language, as BCP 47 writes it, such as "de" or "pt-BR"
	Descriptions map[string]string
	Icon         string   // a name, path or URL that the host understands
	Surfaces     []string // the kinds of session that see it, such as "chat"; nil: all
}

// Hints help the runtime and policies, and change no right.
type Hints struct {
	Idempotent bool          // the same call twice has one effect
	Risk       perm.Risk     // how much harm a call can do; empty: nothing is said
	Approval   bool          // the author advises that a person approves each call; only a policy asks
	Concurrent bool          // calls of one turn, of this and of other tools that say so, do not need one another: agent.Loop runs them at once
	Timeout    time.Duration // 0: the runtime's default
	Sensitive  []string      // names of arguments that are never shown
}

// Confinement says what keeps a tool to its accesses.
type Confinement string

// The kinds of confinement, weakest first.
const (
	Trusted Confinement = "trusted" // nothing: Go code of the host's own process
	Handles Confinement = "handles" // its author's claim that it acts only through handles
	Sandbox Confinement = "sandbox" // the operating system
)

// Destination says who receives what a tool sends.
type Destination string

// The destinations, mildest first.
const (
	NoDestination Destination = "none"
	Configured    Destination = "configured"   // a service the host configured
	ThirdParty    Destination = "third_party"  // anybody else, fixed by the tool
	ModelChosen   Destination = "model_chosen" // named by the model in its arguments
)

// Revert takes one call back. It is a function of what was journaled and may run
// in another process. It is called again with the same UndoKey after a crash and
// must then do nothing twice.
type Revert func(ctx context.Context, rc RevertContext) error

// RevertContext is what a Revert works from.
type RevertContext struct {
	Input      json.RawMessage // as executed
	Output     json.RawMessage // of the result; null where it was lost
	ExecutedAt time.Time
	Notes      map[string]json.RawMessage // what Execute noted
	Changes    []effect.Change            // what Execute did through handles; they are undone without its help
	Key        string                     // operation key of the call
	UndoKey    string                     // key of this undo, the same for each attempt

	tc ctxperm.ToolContext
}

// ToolContext opens handles under the right that the call was granted when it
// was allowed: no later policy can take it away.
func (rc RevertContext) ToolContext() ctxperm.ToolContext { return rc.tc }

// Args is an input as a Go map, for Invoke.
type Args map[string]any
