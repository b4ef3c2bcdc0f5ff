package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// admitted is a call whose tool exists and whose input is valid. permit accepts
// nothing else.
type admitted struct {
	id        string
	tool      tool.Tool
	seq       int    // number in the transaction; 0 until permit
	input     []byte // canonical
	digest    string // digest of the input
	exact     []perm.ResourceAccess
	class     effect.Class // effect class of this call
	bound     perm.Set     // upper bound of the accesses that the call may request while it runs
	redaction *redaction   // the redaction of this call
	batch     perm.BatchFacts
	resume    *revert.Call // the pending call that this call resumes

	pass    *filterRun    // the run through the filters; nil: the pipeline has none
	refusal *BatchRefusal // the refusal of the batch that contains the call

	progress  func(tool.Progress) // listener of this call alone; nil: none
	begun     startFunc
	onRequest func(ctx context.Context, ask ctxperm.ApprovalRequest) // called for each approval request of the running call; nil: none
	before    []record.Approved                                      // approvals of earlier runs of the call
	during    bool                                                   // the decision is about accesses that the call requests while it runs
	script    *perm.ScriptFacts                                      // what the call's script runs; nil: no script
	program   []perm.ChangeFacts                                     // changes that a finished program proposes; nil: the decision is about the call itself
	git       map[string]*perm.GitFacts                              // Git facts of program, by resource
	preview   string                                                 // the proposed changes as text for the approver

	released *record.Held // the call was held, and its transaction commits now
	doubt    bool         // an earlier release has an unknown outcome

	sums    map[string]json.Number // amounts that the call adds to the counters of its session
	counted perm.SessionFacts      // facts of the session before this call
	order   *record.Order          // place of the call among those of the session
	seen    *moment                // what the decision before the call sees; nil: the facts are the current ones
	charged []perm.Limit           // shared limits that were checked when the call began
}

// admit is step 1: it finds the tool, decodes and validates the input once, and
// computes the exact accesses. The policy never sees a call that admit refuses.
// The record of the refusal has no barrier and no sequence number.
func (l *Pipeline) admit(ctx context.Context, req Request) (admitted, *tool.Outcome) {
	t, err := l.tools().Find(req.Tool)
	if err != nil {
		if t.IsZero() {
			err = l.notFound(req.Tool) // the error must not name hidden tools
		}
		return admitted{}, l.invalid(ctx, req, tool.Tool{}, err)
	}
	if why := t.NotConfiguredReason(); why != "" {
		return admitted{}, l.invalid(ctx, req, t, unconfigured(t, why))
	}
	a := admitted{id: req.ID, tool: t, batch: req.Batch, resume: req.resumed, refusal: req.Refusal, progress: req.Progress, begun: req.OnStart, onRequest: req.Asked}
	if a, err = l.accept(a, req.Input); err != nil {
		return admitted{}, l.invalid(ctx, req, t, err)
	}
	var before []record.Replacement
	if req.resumed != nil && req.resumed.Asked != nil {
		before = req.resumed.Asked.Replaced
	}
	a.pass = l.newFilterRun(req.Turn, before)
	return a, nil
}

// notFound returns the error for a name that no tool has. It lists only the tools
// that are visible to the session.
func (l *Pipeline) notFound(name string) error {
	all := l.tools()
	var visible []tool.Tool
	for _, n := range all.Names() {
		if versions := all.Versions(n); versions[0].HiddenReason(l.p.Client) == "" {
			slices.Reverse(versions) // NewRegistry takes the newest one last
			visible = append(visible, versions...)
		}
	}
	seen, err := tool.NewRegistry(visible...)
	if err == nil {
		_, err = seen.Find(name)
	}
	return err
}

// accept sets the decoded and validated input of a call, and all that the input
// determines.
func (l *Pipeline) accept(a admitted, input any) (admitted, error) {
	in, err := internals.Admit(a.tool, input, documentLimits(l.p.Limits))
	if err != nil {
		return a, err
	}
	a.input, a.exact, a.bound, a.sums, a.class, a.script = in.Canonical, in.Exact, in.Bound, in.Sums, in.Class, in.Script
	a.digest = string(canon.Sum("remit/input/v1", a.input))
	a.redaction = &redaction{input: a.input, known: l.known, sensitive: spec(a.tool).Hints.Sensitive}
	a.redaction.hold()
	return a, nil
}

// invalid ends a call at admit. The record holds no input, because nothing has
// validated it.
func (l *Pipeline) invalid(ctx context.Context, req Request, t tool.Tool, why error) *tool.Outcome {
	reason := l.known.Scrub(why.Error())
	out := tool.Outcome{
		Call: req.ID, Txn: l.p.Recorder.Txn(), Tool: req.Tool, Status: tool.StatusInvalid, EffectClass: "",
		Changes: []tool.Change{}, Error: &tool.Problem{What: "the call is not valid", Why: reason, Fix: "correct the call and send it again"},
	}
	if !t.IsZero() {
		out.EffectClass = t.Class()
	}
	if req.resumed != nil { // the approval request remains, for a program that can resume the call
		out.Error.What = "the call that waits cannot go on here"
		out.Error.Fix = "resume it in a program that has the tool as it was asked about, or take its transaction back"
		return withText(out)
	}
	rec := revert.CallRecord{Call: req.ID, Body: &record.Invalid{Tool: toolRef(t, l.known.Scrub(req.Tool)), Why: reason}}
	// No barrier: nothing happened, so a lost record loses nothing.
	if err := l.p.Recorder.Write(ctx, revert.Write{Records: []revert.CallRecord{rec}}); err != nil {
		out.Error.Why += " (and the journal could not note it: " + err.Error() + ")"
	}
	return withText(out)
}

func toolRef(t tool.Tool, name string) record.ToolRef {
	if t.IsZero() {
		return record.ToolRef{Name: name}
	}
	s := spec(t)
	return record.ToolRef{Name: s.Name, Version: s.Version, Digest: t.Digest(), Settings: t.SettingsDigest(), UndoVersion: s.UndoVersion}
}

// unconfigured is the error of a call of a tool that is not configured.
func unconfigured(t tool.Tool, why string) error {
	return fmt.Errorf("tool %s is not configured: %s (remit tools --why %s says what is missing)", t.Name(), strings.TrimSuffix(why, "."), t.Name())
}
