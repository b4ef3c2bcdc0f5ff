package replay

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// Options configure Run.
type Options struct {
	New *rego.Engine
	// Old decides each call too, and New is compared with it. Nil: New is
	// compared with the recorded decisions.
	Old      *rego.Engine
	Examples int // calls that the report names for each change, at most; 0: 3
}

const defaultExamples = 3

// Run decides each recorded decision again, in their order, and returns what
// would change. It stops at the first decision that cannot be read.
func Run(ctx context.Context, decisions iter.Seq2[agent.RecordedDecision, error], o Options) (*Report, error) {
	if o.New == nil {
		return nil, fmt.Errorf("replay: Options.New is nil: there is no policy to try")
	}
	if o.Examples == 0 {
		o.Examples = defaultExamples
	}
	b := newBuilder(o)
	for d, err := range decisions {
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		if err := b.add(ctx, d); err != nil {
			return nil, err
		}
	}
	return b.report(), nil
}

// Decisions returns the decisions of a session, and those about its commits that
// the options need, in their order.
func Decisions(ctx context.Context, j journal.Journal, session string, o Options) iter.Seq2[agent.RecordedDecision, error] {
	return func(yield func(agent.RecordedDecision, error) bool) {
		commits, err := agent.RecordedCommits(ctx, j, session, o.New.DecidesCommits() || o.Old.DecidesCommits())
		if err != nil {
			yield(agent.RecordedDecision{}, err)
			return
		}
		for d, err := range agent.RecordedDecisions(ctx, j, session) {
			for ; len(commits) > 0 && commits[0].Pos < d.Pos; commits = commits[1:] {
				if !yield(commits[0], nil) {
					return
				}
			}
			if !yield(d, err) {
				return
			}
		}
		for _, d := range commits {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// verdict is what a policy decides about a call as a whole.
type verdict struct {
	effect  perm.Effect
	reasons []perm.Reason
	at      int    // number of the access that gave it
	unknown string // why the verdict is not known; empty: it is
	labels  []string
}

func (b *builder) add(ctx context.Context, d agent.RecordedDecision) error {
	b.r.Decisions++
	b.session(d.Session)
	if d.Stage == "grant" || d.Stage == "filter" {
		b.r.NotByPolicy++ // another policy would not have been asked either
		return nil
	}
	if why := b.undecidable(d); why != "" {
		b.cannot(d, why)
		return nil
	}
	after, err := decide(ctx, b.o.New, b.labelled(d))
	if err != nil {
		return fmt.Errorf("replay: %s: %w", idOf(d), err)
	}
	before := recorded(d)
	if b.o.Old != nil {
		if before, err = decide(ctx, b.o.Old, d); err != nil {
			return fmt.Errorf("replay: %s: %w", idOf(d), err)
		}
	}
	if unknown := cmp.Or(after.unknown, before.unknown); unknown != "" {
		b.cannot(d, unknown)
		return nil
	}
	if askedByRuntime(d) && after.effect > perm.Ask {
		after = recorded(d)
	}
	b.compare(d, before, after)
	return nil
}

// undecidable says why a decision cannot be repeated.
func (b *builder) undecidable(d agent.RecordedDecision) string {
	if len(d.Requests) == 0 {
		return "the record was erased or pruned, or an older program wrote it"
	}
	for _, e := range []*rego.Engine{b.o.New, b.o.Old} {
		for _, field := range d.Unknown {
			if e.ReadsInput(field) {
				return "the policy reads input." + field + ", which the journal does not have of it"
			}
		}
	}
	return ""
}

// recorded returns the decision on the journal.
func recorded(d agent.RecordedDecision) verdict {
	v := verdict{reasons: d.Decision.Reasons}
	for _, e := range []perm.Effect{perm.Allow, perm.Hold, perm.Ask} {
		if e.String() == d.Decision.Effect {
			v.effect = e
		}
	}
	return v
}

// askedByRuntime reports whether the runtime itself asked a person, whatever
// the rules say.
func askedByRuntime(d agent.RecordedDecision) bool {
	return slices.ContainsFunc(d.Decision.Reasons, func(r perm.Reason) bool { return r.Set == "ask" && r.At == "" })
}

// decide returns the strictest decision about the accesses of a call, as the
// runtime would.
func decide(ctx context.Context, e *rego.Engine, d agent.RecordedDecision) (v verdict, err error) {
	for i, req := range d.Requests {
		got, err := e.Decide(ctx, req)
		if err != nil {
			return verdict{}, fmt.Errorf("the policy cannot decide: %w", err)
		}
		one := held(got, req, d)
		v.labels = append(v.labels, got.Details().Labels...)
		one.labels = v.labels
		unknown := cmp.Or(v.unknown, one.unknown)
		switch one.at = i; {
		case i == 0 || one.effect < v.effect:
			v = one
		case one.effect == v.effect:
			v.reasons = append(v.reasons, one.reasons...)
		}
		v.unknown = unknown
		if v.effect == perm.Deny {
			break
		}
	}
	return v, nil
}

// held applies the budgets and requirements of a decision, as the runtime does.
func held(d perm.Decision, req perm.Request, of agent.RecordedDecision) verdict {
	v, details := verdict{effect: d.Effect(), reasons: d.Reasons()}, d.Details()
	if v.effect == perm.Deny || req.Purpose == perm.PurposeCommit {
		return v
	}
	for _, l := range details.Limits {
		if slices.Contains(of.Unknown, "session.tools") {
			v.unknown = fmt.Sprintf("the budget %q (%s) counts calls of the session, of which some were erased or pruned", l.Budget, l.At)
			continue
		}
		if l.Shared() {
			v.unknown = fmt.Sprintf("the budget %q (%s) counts per %s, which a replay does not count", l.Budget, l.At, l.Per)
			continue
		}
		if over := l.Over(req.Session, req.Tool.Name, of.Sums); over != "" {
			return verdict{reasons: []perm.Reason{{Text: over, At: l.At, Set: "limit"}}}
		}
	}
	needs := details.Requires
	for _, text := range req.Session.Requires {
		needs = append(needs, perm.Reason{Text: text, Set: "require"})
	}
	for _, need := range needs {
		if !meets(req, need.Text) {
			return verdict{reasons: []perm.Reason{{Text: fmt.Sprintf("it requires %q, which the tool does not meet", need.Text), At: need.At, Set: "require"}}}
		}
	}
	return v
}

func meets(req perm.Request, need string) bool {
	switch need {
	case "verify":
		return req.Tool.CanVerify
	case "revert":
		return req.Tool.CanRevert || req.Call.EffectClass == string(effect.Pure)
	case "sandbox", "preview":
		return req.Tool.Confinement == "sandbox"
	default:
		return false
	}
}
