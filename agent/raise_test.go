package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
	"github.com/remit-dev/remit/tool/filter"
	"github.com/remit-dev/remit/verify"
)

// reading is a tool whose result raises what its input says, as JSON of a result.
func reading(t *testing.T, opts ...func(*tool.Spec)) tool.Tool {
	return answering(t, "read", func(in string) tool.Result {
		var r tool.Result
		if err := json.Unmarshal([]byte(in), &r); err != nil {
			return tool.Result{Text: err.Error(), IsError: true}
		}
		return r
	}, opts...)
}

func labels(s *agent.Session) []string { return agent.FactsAt(s, time.Now()).Labels }

const secretStays = `package remit
deny contains "secrets stay here" if { input.tool.name == "visit"; "secret" in input.session.labels }
deny contains "it must look first" if { input.tool.name == "visit"; "verify" in input.session.requires }
allow contains "the rest" if true`

func TestResultsRaiseLabels(t *testing.T) {
	ctx := context.Background()
	rt := newRuntime(t, agent.Tools(browser(t)...), agent.Tools(reading(t)), agent.Policy(mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": secretStays}})))
	s := newSession(t, rt)
	require.True(t, visits(t, s, "x"))
	out := does(t, s, "read", `{"text":"top","labels":["secret","case:7"]}`)
	require.Equal(t, []string{"secret", "case:7"}, out.Result.Labels)
	require.Equal(t, []string{"case:7", "secret"}, labels(s))
	_, err := begin(t, s).Invoke(ctx, "visit", "x")
	require.ErrorContains(t, err, "secrets stay here")
	does(t, s, "read", `{"text":"nothing"}`)
	require.Equal(t, []string{"case:7", "secret"}, labels(s), "nothing lowers them")
	again, err := agent.RebuiltAt(ctx, s, time.Now())
	require.NoError(t, err)
	require.Equal(t, agent.FactsAt(s, time.Now()).Labels, again.Labels)
	require.True(t, visits(t, newSession(t, rt), "x"), "labels are the session's")

	for name, bad := range map[string]string{
		"a label of other signs": `{"text":"x","labels":["Top Secret"]}`, "an empty label": `{"text":"x","labels":[""]}`,
		"too many labels":     fmt.Sprintf(`{"text":"x","labels":["a"%s]}`, strings.Repeat(`,"a"`, 64)),
		"what nothing can be": `{"text":"x","requires":["luck"]}`,
	} {
		_, err := begin(t, s).Invoke(ctx, "read", bad)
		require.ErrorIs(t, err, tool.ErrFailed, name)
	}
}

func TestResultsRaiseRequirements(t *testing.T) {
	ctx := context.Background()
	looks := answering(t, "look", func(string) tool.Result { return tool.Text("seen") }, func(s *tool.Spec) {
		s.Verify = func(context.Context, verify.Subject) verify.Verdict { return verify.Applied() }
	})
	rt := newRuntime(t, agent.Tools(browser(t)...), agent.Tools(reading(t), looks), agent.Policy(allowAll()))
	s := newSession(t, rt)
	does(t, s, "read", `{"text":"from here on with care","requires":["verify"]}`)
	out, err := begin(t, s).Invoke(ctx, "read", `{"text":"x"}`)
	require.ErrorIs(t, err, tool.ErrDenied)
	require.ErrorContains(t, err, `a result of this session requires "verify", and the tool declares no Verify`)
	require.Contains(t, out.Error.Fix, "call in another session", "no rule has it")
	does(t, s, "look", "x")
	again, err := agent.RebuiltAt(ctx, s, time.Now())
	require.NoError(t, err)
	require.Equal(t, []string{"verify"}, again.Requires)
	does(t, newSession(t, rt), "read", `{"text":"x"}`)
}

// TestWhatIsRaisedComesBeforeTheResult checks that the journal holds a label
// before the result that raises it. If the journal cannot hold the label, the
// runtime does not return the result.
func TestWhatIsRaisedComesBeforeTheResult(t *testing.T) {
	ctx := context.Background()
	j := journal.Memory()
	rt := newRuntime(t, agent.Tools(reading(t)), agent.Policy(allowAll()), agent.Journal(j))
	s := newSession(t, rt)
	does(t, s, "read", `{"text":"top","labels":["secret"]}`)
	var kinds []record.Kind
	for e, err := range j.Entries(ctx, journal.Query{Session: s.ID(), Kinds: []record.Kind{record.KindLabelled, record.KindDone}}) {
		require.NoError(t, err)
		kinds = append(kinds, e.Header.Kind)
	}
	require.Equal(t, []record.Kind{record.KindLabelled, record.KindDone}, kinds)

	rt = newRuntime(t, agent.Tools(reading(t)), agent.Policy(allowAll()), agent.Journal(&labelless{Journal: journal.Memory()}))
	s = newSession(t, rt)
	out, err := begin(t, s).Invoke(ctx, "read", `{"text":"top","labels":["secret"]}`)
	require.Error(t, err)
	require.Equal(t, tool.StatusVerifyFailed, out.Status)
	require.NotContains(t, out.Text, "top")
	require.Contains(t, out.Error.Why, "the disk is full")
	require.Equal(t, []string{"secret"}, labels(s), "a label too many only makes the policy stricter")
}

// TestMostLabels checks that the runtime does not return a result that exceeds
// the maximum number of labels of a session.
func TestMostLabels(t *testing.T) {
	ctx := context.Background()
	rt := newRuntime(t, agent.Tools(reading(t)), agent.Policy(allowAll()))
	s := newSession(t, rt)
	for i := range 25 {
		var all []string
		for n := range 40 {
			all = append(all, fmt.Sprintf(`"l%d"`, i*40+n))
		}
		does(t, s, "read", `{"text":"x","labels":[`+strings.Join(all, ",")+`]}`)
	}
	does(t, s, "read", `{"text":"x","labels":["l0"]}`)
	_, err := begin(t, s).Invoke(ctx, "read", `{"text":"x","labels":["another"]}`)
	require.ErrorContains(t, err, "more than 1000 labels")
}

// TestLabelsAreHandedOn: a sub-agent knows what it was told, also in another process, and what it learns is its own.
func TestLabelsAreHandedOn(t *testing.T) {
	ctx := context.Background()
	rt := newRuntime(t, agent.Tools(reading(t)), agent.Policy(allowAll()))
	parent := newSession(t, rt)
	does(t, parent, "read", `{"text":"x","labels":["secret"],"requires":["verify"]}`)
	child := hand(t, parent)
	for _, s := range []*agent.Session{child, hand(t, child)} {
		require.Equal(t, []string{"secret"}, labels(s))
		require.Equal(t, []string{"verify"}, agent.FactsAt(s, time.Now()).Requires)
		again, err := agent.RebuiltAt(ctx, s, time.Now())
		require.NoError(t, err)
		require.Equal(t, []string{"secret"}, again.Labels)
		require.Equal(t, []string{"verify"}, again.Requires)
	}
	unraised := newSession(t, rt)
	does(t, hand(t, unraised), "read", `{"text":"x","labels":["secret"]}`)
	require.Empty(t, labels(unraised))
}

// TestFiltersDoNotLowerLabels: what a filter takes out of a result still counts, and so does what it puts in.
func TestFiltersDoNotLowerLabels(t *testing.T) {
	strip := filter.Filter{Name: "strip", After: func(_ context.Context, _ filter.Call, r tool.Result) (tool.Result, error) {
		r.Labels = []string{"seen"}
		return r, nil
	}}
	rt := newRuntime(t, agent.Tools(reading(t)), agent.Policy(allowAll()), agent.Filters(strip))
	s := newSession(t, rt)
	does(t, s, "read", `{"text":"x","labels":["secret"]}`)
	require.Equal(t, []string{"secret", "seen"}, labels(s))
}

// TestContentIsLabelledBeforeTheCall: errors can hold what strangers wrote, too.
func TestContentIsLabelledBeforeTheCall(t *testing.T) {
	ctx := context.Background()
	of := func(c provenance.Content) func(*tool.Spec) {
		return func(s *tool.Spec) { s.OutputContent = &c }
	}
	for name, c := range map[string]struct {
		content provenance.Content
		want    []string
	}{
		"zero":    {provenance.Content{}, []string{"private", "untrusted"}},
		"trusted": {provenance.Content{Trust: provenance.Trusted}, []string{"private"}},
		"public":  {provenance.Content{Confidentiality: provenance.Public}, []string{"untrusted"}},
		"both":    {provenance.Content{Trust: provenance.Trusted, Confidentiality: provenance.Public}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			rt := newRuntime(t, agent.Tools(reading(t, of(c.content))), agent.Policy(allowAll()))
			s := newSession(t, rt)
			_, err := begin(t, s).Invoke(ctx, "read", "no JSON")
			require.ErrorIs(t, err, tool.ErrFailed)
			require.Equal(t, c.want, labels(s))
		})
	}
	plain := reading(t)
	declared := reading(t, of(provenance.Content{}))
	require.NotEqual(t, plain.Digest(), declared.Digest())
	_, err := plain.Modify(func(s *tool.Spec) { s.OutputContent = &provenance.Content{Trust: "very"} })
	require.ErrorContains(t, err, `trust "very"`)

	outer, err := compose.Chain(compose.Declaration{Name: "outer", Description: "Reads twice."}, compose.Part{Tool: declared}, compose.Part{Tool: answering(t, "echo", tool.Text)})
	rt := newRuntime(t, agent.Tools(mustTool(t, outer, err)), agent.Policy(allowAll()))
	s := newSession(t, rt)
	does(t, s, "outer", `{"text":"x","labels":["secret"]}`)
	require.Equal(t, []string{"private", "secret", "untrusted"}, labels(s), "a whole returns what its parts return")
}

// TestLabelledCallIsFound: by its id, though the first that the journal has of it is that the session was labelled.
func TestLabelledCallIsFound(t *testing.T) {
	ctx := context.Background()
	rt := newRuntime(t, agent.Tools(reading(t, func(s *tool.Spec) { s.OutputContent = &provenance.Content{} })), agent.Policy(allowAll()))
	s := newSession(t, rt)
	out, err := s.Call(ctx, "read", `{}`)
	require.NoError(t, err)
	for e, err := range rt.Journal().Entries(ctx, journal.Query{Call: out.Call, Limit: 1}) {
		require.NoError(t, err)
		require.Equal(t, record.KindLabelled, e.Header.Kind)
	}
	txn, err := s.FindTxn(ctx, out.Call)
	require.NoError(t, err)
	require.Equal(t, out.Txn, txn)
	_, err = newSession(t, rt).FindTxn(ctx, out.Call)
	require.ErrorIs(t, err, journal.ErrNotFound)
	_, err = s.Revert(ctx, out.Call, revert.Options{})
	require.NoError(t, err)
}

// TestPolicyLabelsResults: a rule of label may read what a call returned.
func TestPolicyLabelsResults(t *testing.T) {
	ctx, state := context.Background(), filepath.Join(t.TempDir(), "state")
	policy := rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": secretStays + `
label contains "secret" if contains(input.output, "CONFIDENTIAL")`}}
	var token string
	for life := range 2 {
		j, err := sqlite.Open(ctx, state)
		require.NoError(t, err)
		rt, err := agent.New(quiet(), agent.Tools(browser(t)...), agent.Tools(reading(t)), agent.Policy(mustLoad(t, policy)), agent.Journal(j))
		require.NoError(t, err)
		if life == 0 {
			s := newSession(t, rt)
			token = s.Token()
			does(t, s, "read", `{"text":"for everybody"}`)
			require.True(t, visits(t, s, "x"))
			does(t, s, "read", `{"text":"CONFIDENTIAL"}`)
			_, err := begin(t, s).Invoke(ctx, "visit", "x")
			require.True(t, errors.Is(err, tool.ErrDenied))
		} else {
			s, err := rt.ResumeSession(ctx, token)
			require.NoError(t, err)
			_, err = begin(t, s).Invoke(ctx, "visit", "x")
			require.ErrorContains(t, err, "secrets stay here")
		}
		require.NoError(t, rt.Close())
		require.NoError(t, j.Close())
	}
	rt := newRuntime(t, agent.Tools(reading(t)), agent.Policy(mustLoad(t, policy)), agent.Journal(&labelless{Journal: journal.Memory()}))
	_, err := begin(t, newSession(t, rt)).Invoke(ctx, "read", `{"text":"CONFIDENTIAL"}`)
	require.ErrorContains(t, err, "could not be written down")
	_, err = begin(t, newSession(t, rt)).Invoke(ctx, "read", `{"text":"for everybody"}`)
	require.NoError(t, err)
}
