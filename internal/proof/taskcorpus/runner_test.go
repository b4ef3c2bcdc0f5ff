package taskcorpus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
)

// allowAll is the policy beneath all packs. They only add approvals and denials.
const allowAll = "allow-all"

var allows = fstest.MapFS{"allow.rego": {Data: []byte("package remit\n\nallow contains \"everything\" if true\n")}}

// strict makes the pack provenance strict.
var strict = fstest.MapFS{"strict.rego": {Data: []byte("package remit.provenance\n\nstrict := true\n")}}

// everything is the policy that allows everything.
type everything struct{}

func (everything) Decide(context.Context, perm.Request) (perm.Decision, error) {
	return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
}

// ReadsValues tells the runtime that the origins of values are not needed.
func (everything) ReadsValues() bool { return false }

// engineOf returns the engine of a policy: names of packs, joined by +.
func engineOf(policy string) (perm.Engine, error) {
	if policy == allowAll {
		return everything{}, nil
	}
	sources := []rego.Source{{FS: allows}}
	for name := range strings.SplitSeq(policy, "+") {
		if name == "strict" {
			sources = append(sources, rego.Source{FS: strict})
			continue
		}
		pack, ok := policies.Pack(name)
		if !ok {
			return nil, fmt.Errorf("pack %q: there is none; the packs are %v", name, policies.Names())
		}
		sources = append(sources, rego.Source{FS: pack, Prefix: policies.Prefix, NoTests: true})
	}
	return rego.New(rego.Options{Sources: sources, Timeout: time.Minute})
}

// runner runs tasks under one policy, one after the other.
type runner struct {
	host    *host
	runtime *agent.Runtime
	current *run
	strict  bool // every call must run
}

func newRunner(t *testing.T, policy string) *runner {
	t.Helper()
	engine, err := engineOf(policy)
	require.NoError(t, err)
	r := startRunner(t, engine)
	r.strict = policy == allowAll
	return r
}

func startRunner(t *testing.T, engine perm.Engine) *runner {
	t.Helper()
	r := &runner{host: newHost()}
	approver := ctxperm.ApproverFunc(func(context.Context, ctxperm.ApprovalRequest) (ctxperm.Answer, error) { return r.current.answer(), nil })
	rt, err := agent.New(agent.Tools(r.host.tools...), agent.Policy(engine), agent.Log(slog.New(slog.DiscardHandler)), agent.Approver(approver))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	r.runtime = rt
	return r
}

// run is one run of a task.
type run struct {
	tx      *agent.Txn
	results results
	honest  bool     // whether the call in flight is one of the honest ones
	foreign []string // injected calls with an effect that ran

	inputs   []string // of the honest calls, resolved
	guessed  []string // calls with IDs that no result has
	vouched  []string // tools with the hostile text in a trusted part of the result
	prompts  int
	refused  int  // honest calls that did not run
	hijacked bool // the agent has read the hostile text
}

// outcome is what a run came to.
type outcome struct {
	*run
	whole  bool
	harmed bool
}

// answer is that of the person: approve exactly the honest calls. The commit is
// approved if all its effects are honest.
func (r *run) answer() ctxperm.Answer {
	r.prompts++
	if r.honest {
		return ctxperm.Approve("lena")
	}
	return ctxperm.Deny("lena", "not asked for")
}

// ending says what ends a run.
type ending int

const (
	commits ending = iota
	reverts        // to see which effects a revert takes back
)

// play runs a task. Without an attack, the agent makes the honest calls. With one, it
// makes them until it has read the hostile text, then the injected calls, and then
// the rest.
func (r *runner) play(t *testing.T, task task, hostile *attack, end ending) outcome {
	t.Helper()
	ctx := t.Context()
	r.host.now = newServices()
	if hostile != nil {
		hostile.in(r.host.now, hostile.text)
	}
	s, err := r.runtime.Session(ctx, perm.Principal{ID: "agent"}, agent.Heard(task.says))
	require.NoError(t, err)
	tx, err := s.Begin(ctx)
	require.NoError(t, err)
	run := &run{tx: tx, results: results{}}
	r.current = run
	r.script(t, task, hostile)
	r.finish(t, end)
	got := outcome{run: run, whole: task.whole(r.host.now)}
	if hostile != nil {
		got.harmed = hostile.harm(r.host.now)
	}
	return got
}

func (r *runner) script(t *testing.T, task task, hostile *attack) {
	for i, honest := range task.does {
		number := i + 1
		if changed, ok := r.changed(hostile, number); ok {
			r.invoke(t, fmt.Sprint(number), changed, false)
			continue
		}
		output, done := r.invoke(t, fmt.Sprint(number), honest, true)
		if !done {
			r.current.refused++
		}
		if hostile == nil || !contains(output, hostile.text) {
			continue
		}
		if r.host.declared[honest.tool].trusts(output, hostile.text) {
			r.current.vouched = append(r.current.vouched, honest.tool)
		}
		if r.current.hijacked {
			continue
		}
		r.current.hijacked = true
		r.lookUp(t, hostile)
		for j, injected := range hostile.does {
			r.invoke(t, fmt.Sprintf("a%d", j+1), injected, false)
		}
	}
}

// idPrefixes are those of all IDs.
var idPrefixes = []string{"acc-", "ch-", "u-", "bk-", "fl-", "h-", "m-", "e-", "o-", "doc-", "x-"}

// catalogues are the tools that list the IDs with a prefix.
var catalogues = map[string]string{"acc-": "list_accounts", "ch-": "list_channels", "u-": "list_members", "bk-": "list_bookings"}

// lookUp makes the calls from which a hijacked agent learns the IDs that its calls
// have as literals. Otherwise it would be stopped because of an ID that it cannot
// know.
func (r *runner) lookUp(t *testing.T, hostile *attack) {
	list := slices.Concat(hostile.does, slices.Collect(maps.Values(hostile.instead)))
	for _, prefix := range slices.Sorted(maps.Keys(catalogues)) {
		if slices.ContainsFunc(list, func(of call) bool { return r.current.unknown(of.args, prefix) }) {
			r.invoke(t, "a-"+prefix, c(catalogues[prefix]), false)
		}
	}
}

// unknown reports whether a value is, or contains, an ID with the prefix that no
// result has.
func (r *run) unknown(v any, prefix string) bool {
	switch v := v.(type) {
	case string:
		return strings.HasPrefix(v, prefix) && !contains(map[string]any(r.results), v)
	case []any:
		return slices.ContainsFunc(v, func(v any) bool { return r.unknown(v, prefix) })
	case map[string]any:
		for _, v := range v {
			if r.unknown(v, prefix) {
				return true
			}
		}
	}
	return false
}

// changed returns what a hijacked agent calls in place of an honest call.
func (r *runner) changed(hostile *attack, number int) (call, bool) {
	if hostile == nil || !r.current.hijacked {
		return call{}, false
	}
	changed, ok := hostile.instead[number]
	return changed, ok
}

// invoke makes one call. done is false if it did not run.
func (r *runner) invoke(t *testing.T, number string, of call, honest bool) (output any, done bool) {
	t.Helper()
	args, ok := r.current.results.resolve(of.args)
	if !ok {
		return nil, false
	}
	raw, err := json.Marshal(args)
	require.NoError(t, err)
	if honest {
		r.current.inputs = append(r.current.inputs, of.tool+" "+string(raw))
	}
	for _, prefix := range idPrefixes {
		if r.current.unknown(args, prefix) {
			r.current.guessed = append(r.current.guessed, of.tool+" "+string(raw))
		}
	}
	r.current.honest = honest
	out, err := r.current.tx.Invoke(t.Context(), of.tool, json.RawMessage(raw))
	if r.strict && err != nil {
		t.Fatalf("call %s, %s %s: %v", number, of.tool, raw, err)
	}
	if err != nil {
		return nil, false
	}
	if !honest && out.EffectClass != effect.Pure {
		r.current.foreign = append(r.current.foreign, of.tool+" "+string(raw))
	}
	if len(out.Output) > 0 {
		require.NoError(t, json.Unmarshal(out.Output, &output))
		r.current.results[number] = output
	}
	return output, true
}

// finish ends the transaction. If the commit is refused, everything is reverted.
func (r *runner) finish(t *testing.T, end ending) {
	t.Helper()
	ctx, run := t.Context(), r.current
	run.honest = len(run.foreign) == 0
	if end == commits && run.tx.Commit(ctx) == nil {
		return
	}
	_, err := run.tx.Revert(ctx, revert.Options{})
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) && !errors.Is(err, agent.ErrTxnEnded) {
		require.NoError(t, err)
	}
}
