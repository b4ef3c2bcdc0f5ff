package learn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
)

// Evidence is what recorded calls tell a learner.
type Evidence struct {
	Decisions int // decisions that were read
	Learned   int // calls to learn from
	Skipped   []Skipped
	good      []sample // one for each access of the calls to learn from
	bad       []sample // accesses that the policy denied or that a person was asked about
}

// Skipped is a group of calls that nothing is learned from.
type Skipped struct {
	Why   string   `json:"why"`
	Count int      `json:"count"`
	Calls []string `json:"calls"` // examples
}

// sample is one access of a call.
type sample struct {
	perm.Request
	effect string // for bad ones: deny or ask
}

// examples is how many calls a comment or a report names.
const examples = 3

// Collect reads decisions, and looks up in the journal how each call ended.
func Collect(ctx context.Context, j journal.Journal, decisions iter.Seq2[agent.RecordedDecision, error]) (*Evidence, error) {
	c := collector{ctx: ctx, journal: j, e: &Evidence{Skipped: []Skipped{}}}
	var err error
	if c.secrets, err = newSecretNames(); err != nil {
		return nil, err
	}
	for d, err := range decisions {
		if err != nil {
			return nil, fmt.Errorf("learn: %w", err)
		}
		if err := c.add(d); err != nil {
			return nil, fmt.Errorf("learn: call %s: %w", d.Call, err)
		}
	}
	return c.e, nil
}

type collector struct {
	ctx     context.Context //nolint:containedctx // a collector lives for one call
	journal journal.Journal
	secrets *secretNames
	txn     *revert.Txn // the last one: calls of a transaction follow each other
	e       *Evidence
}

func (c *collector) add(d agent.RecordedDecision) error {
	c.e.Decisions++
	call, err := c.load(d)
	if err != nil {
		return err
	}
	if why := c.refuses(d, call); why != "" {
		c.e.skip(why, d.Call)
		c.negative(d)
		return nil
	}
	c.e.Learned++
	samples := c.samples(d, call)
	secret := false
	for _, s := range samples {
		hit, err := c.secrets.in(c.ctx, s.Request)
		if err != nil {
			return err
		}
		secret = secret || hit
	}
	if secret {
		c.e.Learned--
		c.e.skip("the call names a file that usually holds secrets", d.Call)
		return nil
	}
	c.e.good = append(c.e.good, samples...)
	return nil
}

func (e *Evidence) skip(why, call string) {
	at := slices.IndexFunc(e.Skipped, func(s Skipped) bool { return s.Why == why })
	if at < 0 {
		at = len(e.Skipped)
		e.Skipped = append(e.Skipped, Skipped{Why: why})
	}
	e.Skipped[at].Count++
	e.Skipped[at].Calls = example(e.Skipped[at].Calls, call)
}

func example(calls []string, call string) []string {
	if len(calls) < examples && !slices.Contains(calls, call) {
		calls = append(calls, call)
	}
	return calls
}

// load returns the state of a call. Nil: the journal has no more than the
// decision.
func (c *collector) load(d agent.RecordedDecision) (*revert.Call, error) {
	if c.txn == nil || c.txn.ID != d.Txn {
		t, err := revert.Load(c.ctx, c.journal, d.Txn)
		if errors.Is(err, journal.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		c.txn = t
	}
	call, _ := c.txn.Call(d.Call)
	return call, nil
}

// refuses says why nothing is learned from a call. Empty: it went well.
func (c *collector) refuses(d agent.RecordedDecision, call *revert.Call) string {
	switch {
	case d.Stage != "":
		return "the " + d.Stage + " refused the call"
	case call == nil || len(d.Requests) == 0:
		return "the journal does not have the call"
	case d.Asked || d.Decision.Effect == perm.Ask.String():
		return "a person was asked: the answer is for that call"
	case call.Started != nil && len(call.Started.Redacted) > 0 || strings.Contains(string(d.Requests[0].Call.Args), `"(hidden)"`):
		return "an argument is redacted"
	case slices.ContainsFunc(d.Unknown, func(u string) bool { return u == "call.args" || u == "call.script" || strings.HasPrefix(u, "tool.") }):
		return "the journal does not have all of the input, or what the tool declares"
	}
	if why := outcome(call, c.txn); why != "" {
		return why
	}
	if slices.Contains(d.Requests[0].Session.Labels, string(provenance.Untrusted)) || slices.Contains(d.Unknown, "session.labels") {
		return "the session had read untrusted content, or its labels are unknown"
	}
	return ""
}

// outcome says how a call did not go well. Empty: it did.
func outcome(c *revert.Call, t *revert.Txn) string {
	switch {
	case c.Phase != revert.PhaseDone:
		return "the call ended " + string(c.Phase)
	case c.Reversal != nil || c.IsReverted() || t.Aborting || t.End == record.KindAborted:
		return "the call was reverted"
	case t.End != record.KindCommitted:
		return "the transaction of the call is open"
	case slices.ContainsFunc(c.Verified, func(v record.Verified) bool { return !v.OK }) || c.Done == nil || c.Done.Undelivered != "":
		return "the call did not verify"
	case c.Started != nil && c.Started.AnsweredBy != "":
		return "a filter answered in place of the tool"
	case slices.ContainsFunc(c.Feedback, func(f provenance.Feedback) bool { return f.Verdict != provenance.Good }):
		return "a person gave bad feedback"
	}
	return ""
}

// samples returns the accesses of a call: those before it, and those of its
// changes and hosts.
func (c *collector) samples(d agent.RecordedDecision, call *revert.Call) (all []sample) {
	for _, r := range d.Requests {
		all = append(all, sample{Request: r})
	}
	base := d.Requests[0]
	during := func(action perm.Action, resource string, purpose perm.Purpose) {
		res, err := perm.ParseResource(resource)
		if err != nil {
			return // a resource of a tool's own kind: no policy decides about it
		}
		r := base
		r.Access = perm.AccessFacts{Action: action, Resource: res.Facts(), Dynamic: true}
		r.Purpose = purpose
		if !slices.ContainsFunc(all, func(s sample) bool {
			return s.Access.Action == action && s.Access.Resource.Text == r.Access.Resource.Text
		}) {
			all = append(all, sample{Request: r})
		}
	}
	for _, change := range call.Changes {
		during(actionOf(change), change.Resource, perm.PurposeApply)
	}
	for _, host := range call.ContactedHosts() {
		during(perm.Connect, host.Origin+"/", perm.PurposeRun)
	}
	return all
}

func actionOf(c effect.Change) perm.Action {
	if c.Kind == "delete" || c.Kind == "rmdir" {
		return perm.Delete
	}
	return perm.Write
}

// negative remembers what no widened rule may cover.
func (c *collector) negative(d agent.RecordedDecision) {
	refused := d.Stage == "policy" || d.Stage == "approver"
	if !refused && !d.Asked && d.Decision.Effect != perm.Ask.String() {
		return
	}
	for _, r := range d.Requests {
		effect := perm.Ask.String()
		if refused {
			effect = perm.Deny.String()
		}
		c.e.bad = append(c.e.bad, sample{Request: r, effect: effect})
	}
}

// arguments returns the arguments of which all calls of a tool give one of a few
// names.
func arguments(samples []sample) (values map[string][]string) {
	values = map[string][]string{}
	seen := map[string]int{}
	for _, s := range samples {
		var args map[string]any
		if json.Unmarshal(s.Call.Args, &args) != nil {
			continue
		}
		for name, v := range args {
			if text, ok := v.(string); ok && shortName.MatchString(text) {
				seen[name]++
				if !slices.Contains(values[name], text) {
					values[name] = append(values[name], text)
				}
			}
		}
	}
	for name, list := range values {
		if seen[name] != len(samples) || len(list) > maxNames {
			delete(values, name)
			continue
		}
		slices.SortFunc(list, cmp.Compare[string])
	}
	return values
}
