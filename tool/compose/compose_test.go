package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/compose"
	"github.com/remit-dev/remit/verify"
)

type line struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// shop is a folder that handles reach, and a ledger that only a tool of its own reaches.
type shop struct {
	t           *testing.T
	dir, ledger string
	failing     string // the tool that goes wrong
	mode        string
}

func newShop(t *testing.T) *shop {
	s := &shop{t: t, dir: t.TempDir(), ledger: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "old"), []byte("old"), 0o600))
	return s
}

// fails says how a tool goes wrong.
func (s *shop) fails(name string) string {
	if s.failing == name {
		return s.mode
	}
	return ""
}

func (s *shop) goes(mode string) error {
	switch mode {
	case "panic":
		panic("wrong")
	case "":
		return nil
	default:
		return errors.New("it went wrong")
	}
}

var access = []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/{path}")}

// put appends to a file through a handle.
func (s *shop) put(name string) tool.Tool {
	t, err := tool.CreateTyped(name, "Append.", append([]perm.ResourceAccess{perm.Access(perm.Read, "file://workspace/{path}")}, access...),
		func(ctx context.Context, tc ctxperm.ToolContext, in line) (line, error) {
			fail := s.fails(name)
			if fail == "early" {
				return in, s.goes(fail)
			}
			f, err := files.Open(tc, "workspace")
			if err != nil {
				return in, err
			}
			was, err := f.Read(ctx, in.Path, 0, 0)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return in, err
			}
			in.Text += "." + name
			if err := f.Write(ctx, in.Path, append(was.Data, in.Text...), files.WriteOptions{}); err != nil {
				return in, err
			}
			return in, s.goes(fail)
		}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	require.NoError(s.t, err)
	return t
}

// book writes into the ledger, in a way that only its own Revert reverts.
func (s *shop) book(name string) tool.Tool {
	at := func(key string) string { return filepath.Join(s.ledger, strings.TrimPrefix(key, "sha256:")) }
	t, err := tool.CreateTyped(name, "Book.", nil, func(ctx context.Context, tc ctxperm.ToolContext, in line) (line, error) {
		fail := s.fails(name)
		if fail != "" && fail != "late" {
			return in, tool.NoEffect(s.goes("early"))
		}
		in.Text += "." + name
		if err := tc.Note(ctx, "text", in.Text); err != nil {
			return in, err
		}
		if err := os.WriteFile(at(tc.Call().Key), []byte(in.Text), 0o600); err != nil {
			return in, err
		}
		return in, s.goes(fail)
	}, tool.Effect(effect.Reversible), tool.RevertWith("1", func(_ context.Context, rc tool.RevertContext) error {
		var noted string
		var in, out line
		data, err := os.ReadFile(at(rc.Key))
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		err = errors.Join(err, canon.Decode(rc.Notes["text"], &noted), canon.Decode(rc.Input, &in))
		if string(rc.Output) != "null" {
			err = errors.Join(err, canon.Decode(rc.Output, &out))
			if err == nil && out.Text != noted {
				err = fmt.Errorf("the output is %q, and the note %q", out.Text, noted)
			}
		}
		if err == nil && (noted != string(data) || noted != in.Text+"."+name) {
			err = fmt.Errorf("noted %q, booked %q, of %q", noted, data, in.Text)
		}
		return errors.Join(err, os.Remove(at(rc.Key)))
	}))
	require.NoError(s.t, err)
	return t
}

// looked is book with a Verify, which knows its booking by input and note alone.
func (s *shop) looked(name string) tool.Tool {
	t, err := s.book(name).Modify(func(spec *tool.Spec) {
		spec.Verify = func(_ context.Context, subject verify.Subject) verify.Verdict {
			var in line
			var noted string
			if err := canon.Decode(subject.Input, &in); err != nil {
				return verify.CannotTell(err.Error())
			}
			if raw, ok := subject.Notes["text"]; ok {
				if err := canon.Decode(raw, &noted); err != nil || noted != in.Text+"."+name {
					return verify.CannotTell("a note of somebody else")
				}
			}
			for _, text := range s.orders() {
				if text == in.Text+"."+name {
					return verify.Applied()
				}
			}
			return verify.Absent()
		}
	})
	require.NoError(s.t, err)
	return t
}

func (s *shop) upper(name string) tool.Tool {
	t, err := tool.CreateTyped(name, "Upper-case.", nil, func(_ context.Context, _ ctxperm.ToolContext, in line) (line, error) {
		fail := s.fails(name)
		in.Text = strings.ToUpper(in.Text)
		return in, s.goes(fail)
	}, tool.Pure())
	require.NoError(s.t, err)
	return t
}

func (s *shop) orders() (all []string) {
	entries, err := os.ReadDir(s.ledger)
	require.NoError(s.t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(s.ledger, e.Name()))
		require.NoError(s.t, err)
		all = append(all, string(data))
	}
	return all
}

// state is all that the tools can have changed.
func (s *shop) state() map[string]string {
	m := map[string]string{}
	require.NoError(s.t, filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		m[path[len(s.dir):]] = string(data)
		return err
	}))
	count := map[string]int{}
	for _, text := range s.orders() {
		count[text]++
	}
	for text, n := range count {
		m["booked "+text] = fmt.Sprint(n)
	}
	return m
}

func allowAll() perm.Engine {
	return perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
	})
}

func (s *shop) runtime(opts []agent.Option, tools ...tool.Tool) *agent.Runtime {
	rt, err := agent.New(append([]agent.Option{agent.Log(slog.New(slog.DiscardHandler)), agent.Policy(allowAll()), agent.Root("workspace", s.dir), agent.Tools(tools...)}, opts...)...)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = rt.Close() })
	return rt
}

func session(t *testing.T, rt *agent.Runtime) *agent.Session {
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	return s
}

// plan is a composition, or one tool.
type plan struct {
	kind  string // chain, parallel, fallback, conditional, or empty
	parts []plan
	leaf  tool.Tool
	n     int
}

// String writes a plan as calls.
func (p plan) String() string {
	if p.kind == "" {
		return p.leaf.Spec().Description + p.leaf.Name()
	}
	return fmt.Sprintf("%s(%v, %v)", p.kind, p.parts[0], p.parts[1])
}

// made makes random plans of tools.
func (s *shop) made(r *rand.Rand, depth int, n *int) plan {
	*n++
	if depth == 0 || r.IntN(3) == 0 {
		name := fmt.Sprintf("t%d", *n)
		leaves := []func(string) tool.Tool{s.put, s.book, s.looked, s.upper, s.put}
		return plan{leaf: leaves[r.IntN(len(leaves))](name), n: *n}
	}
	p := plan{kind: []string{"chain", "parallel", "fallback", "conditional"}[r.IntN(4)], n: *n}
	for range 2 {
		p.parts = append(p.parts, s.made(r, depth-1, n))
	}
	return p
}

// branch gives each branch of a parallel plan a file of its own, as a chain's next part
// cannot take an array.
func branch(i int) func(json.RawMessage) (json.RawMessage, error) {
	return func(raw json.RawMessage) (json.RawMessage, error) {
		var in line
		if err := canon.Decode(raw, &in); err != nil {
			return nil, err
		}
		in.Path += fmt.Sprintf("_%d", i)
		return canon.Marshal(in)
	}
}

// first takes the first output of a parallel plan.
func first(raw json.RawMessage) (json.RawMessage, error) {
	for strings.HasPrefix(string(raw), "[") {
		var all []json.RawMessage
		if err := canon.Decode(raw, &all); err != nil {
			return nil, err
		}
		raw = all[0]
	}
	return raw, nil
}

var lineSchema = json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}},"required":["path","text"],"additionalProperties":false}`)

func (p plan) when(raw json.RawMessage) bool {
	var in line
	return canon.Decode(raw, &in) == nil && len(in.Text)%2 == 0
}

func (p plan) build(t *testing.T) tool.Tool {
	if p.kind == "" {
		return p.leaf
	}
	about := compose.Declaration{Name: fmt.Sprintf("c%d", p.n), Description: "Composed.", Input: lineSchema}
	var parts []compose.Part
	for i, q := range p.parts {
		part := compose.Part{Tool: q.build(t)}
		if p.kind == "parallel" {
			part.Input = branch(i)
		}
		if p.kind == "chain" && i > 0 {
			part.Input = first
		}
		parts = append(parts, part)
	}
	var out tool.Tool
	var err error
	switch p.kind {
	case "chain":
		out, err = compose.Chain(about, parts...)
	case "parallel":
		out, err = compose.Parallel(about, parts...)
	case "fallback":
		out, err = compose.Fallback(about, parts...)
	default:
		out, err = compose.Conditional(about, p.when, parts[0], parts[1])
	}
	require.NoError(t, err)
	return out
}

func (p plan) leaves() []tool.Tool {
	if p.kind == "" {
		return []tool.Tool{p.leaf}
	}
	var all []tool.Tool
	for _, q := range p.parts {
		all = append(all, q.leaves()...)
	}
	return all
}

var errDoubt = errors.New("nobody knows")

// byHand is the slow reference: each tool is a call of its own, and what goes wrong is taken
// back by savepoints.
func (p plan) byHand(t *testing.T, tx *agent.Txn, in json.RawMessage) (json.RawMessage, error) {
	ctx := context.Background()
	mark := fmt.Sprintf("m%d", p.n)
	back := func() {
		_, err := tx.RevertTo(ctx, mark)
		require.NoError(t, err)
	}
	switch p.kind {
	case "":
		out, err := tx.Invoke(ctx, p.leaf.Name(), in)
		if out.Status == tool.StatusUnknown {
			err = errDoubt
		}
		return out.Output, err
	case "conditional":
		if p.when(in) {
			return p.parts[0].byHand(t, tx, in)
		}
		return p.parts[1].byHand(t, tx, in)
	}
	require.NoError(t, tx.Savepoint(ctx, mark))
	var outs []json.RawMessage
	var failed error
	for i, q := range p.parts {
		from := in
		var err error
		switch {
		case p.kind == "parallel":
			from, err = branch(i)(in)
		case p.kind == "chain" && i > 0:
			from, err = first(outs[i-1])
		}
		require.NoError(t, err)
		out, err := q.byHand(t, tx, from)
		if errors.Is(err, errDoubt) {
			return nil, err
		}
		if p.kind == "fallback" {
			if failed = err; err == nil {
				return out, nil
			}
			back()
			continue
		}
		if err != nil && failed == nil {
			failed = err
		}
		if outs = append(outs, out); err != nil && p.kind == "chain" {
			break
		}
	}
	if failed != nil {
		back()
		return nil, failed
	}
	if p.kind == "chain" {
		return outs[len(outs)-1], nil
	}
	all, err := canon.Marshal(outs)
	require.NoError(t, err)
	return all, nil
}

// TestCompositionsDoWhatTheirPartsDo, one call after the other; a revert gives everything
// back, and so does a fault in each place. Where one part cannot say what it did, the call
// cannot, or all of it is gone.
func TestCompositionsDoWhatTheirPartsDo(t *testing.T) {
	ctx := context.Background()
	in := json.RawMessage(`{"path":"a","text":"x"}`)
	runs, undone, faults, further, together := 0, 0, 0, 0, 0
	for seed := range uint64(statcheck.Size(4, 600)) {
		r := rand.New(rand.NewPCG(seed, 14))
		one, two := newShop(t), newShop(t)
		n, m := 0, 0
		p := one.made(r, 2, &n)
		q := two.made(rand.New(rand.NewPCG(seed, 14)), 2, &m)
		whole := p.build(t)
		rt, rt2 := one.runtime(nil, whole), two.runtime(nil, q.leaves()...)
		before := one.state()
		require.Equal(t, before, two.state())
		leaves := p.leaves()
		for failAt := range len(leaves) + 1 {
			for _, mode := range []string{"early", "late", "panic"} {
				if failAt == 0 && mode != "early" || mode != "early" && p.kind == "" {
					continue
				}
				what := fmt.Sprintf("seed %d, %v: tool %d goes wrong %s", seed, p, failAt, mode)
				one.mode, two.mode, one.failing, two.failing = mode, mode, "", ""
				if failAt > 0 {
					one.failing, two.failing = leaves[failAt-1].Name(), leaves[failAt-1].Name()
				}
				runs++
				s, s2 := session(t, rt), session(t, rt2)
				tx, tx2 := begin(t, s), begin(t, s2)
				out, err := tx.Invoke(ctx, whole.Name(), in)
				want, wrong := q.byHand(t, tx2, in)
				switch {
				case errors.Is(wrong, errDoubt):
					require.Contains(t, []tool.Status{tool.StatusUnknown, tool.StatusFailed}, out.Status, what)
				case wrong != nil:
					faults++
					require.Equal(t, tool.StatusFailed, out.Status, "%s: %+v", what, out.Error)
				case err != nil: // what a composed part of a fallback booked goes with the whole call, and nothing takes its place
					require.Equal(t, tool.StatusFailed, out.Status, "%s: %+v", what, out.Error)
					require.Contains(t, p.String(), "fallback", what)
					require.Contains(t, p.String(), "Book", what)
					together++
				default:
					require.JSONEq(t, string(want), string(out.Output), what)
					require.Equal(t, two.state(), one.state(), what)
					if failAt > 0 {
						further++
					}
				}
				if err != nil && out.Status != tool.StatusUnknown {
					require.Equal(t, before, one.state(), "%s: %+v", what, out.Error)
				}
				if out.Status == tool.StatusUnknown || errors.Is(wrong, errDoubt) { // the worlds are not what they were
					one, two, rt, rt2 = nil, nil, nil, nil
					break
				}
				require.NoError(t, tx.Commit(ctx))
				rep, err := s.Revert(ctx, tx.ID(), revert.Options{})
				require.NoError(t, err, "%s: %s %+v %+v", what, out.Status, out.Error, rep)
				undone++
				require.Equal(t, before, one.state(), what)
				_, err = tx2.Revert(ctx, revert.Options{})
				require.NoError(t, err, what)
			}
			if one == nil {
				break
			}
		}
	}
	t.Logf("%d runs, %d reverted, %d faults, %d that another part stood in for, %d of which all was reverted", runs, undone, faults, further, together)
	require.Positive(t, undone)
}

func begin(t *testing.T, s *agent.Session) *agent.Txn {
	tx, err := s.Begin(context.Background())
	require.NoError(t, err)
	return tx
}
