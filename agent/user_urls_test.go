package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
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
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/verify"
)

// userProvidedOnly is the given policy beside one that allows everything.
func userProvidedOnly(t *testing.T) perm.Engine {
	e, err := rego.New(rego.Options{Timeout: time.Minute, Sources: []rego.Source{
		{FS: fstest.MapFS{"all.rego": {Data: []byte(allowsAll)}}},
		{FS: policies.UserProvided(), Prefix: policies.Prefix},
	}})
	require.NoError(t, err)
	return e
}

// answering is a tool that stays where it is, and returns what answer makes of its input.
func answering(t *testing.T, name string, answer func(in string) tool.Result, opts ...func(*tool.Spec)) tool.Tool {
	s := tool.Spec{
		Name: name, Description: "Answers.", EffectClass: effect.Pure, Destination: tool.NoDestination,
		Execute: func(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			var text string
			if err := json.Unmarshal(in, &text); err != nil {
				return tool.Result{}, err
			}
			return answer(text), nil
		},
	}
	for _, o := range opts {
		o(&s)
	}
	made, err := tool.FromSpec(s)
	return mustTool(t, made, err)
}

// browser are tools of an agent that searches, and visits what it finds.
func browser(t *testing.T) []tool.Tool {
	outside := func(s *tool.Spec) { s.Destination = tool.ModelChosen }
	return []tool.Tool{
		answering(t, "visit", func(string) tool.Result { return tool.Text("a page") }, outside),
		answering(t, "search", func(in string) tool.Result {
			return tool.Result{
				Text: "For " + in + " there is https://found.example/page?n=1.", JSON: json.RawMessage(`{"more":["https:\/\/json.example/x"]}`),
				Sources: []provenance.Reference{{Title: "A source", URL: "https://source.example/"}},
				Parts:   []tool.Part{{MediaType: "text/html", Data: []byte(`<a href="https://part.example/?a=1&amp;b=2">`)}},
			}
		}),
		answering(t, "echo", func(in string) tool.Result { return tool.Text("You said " + in) }),
		answering(t, "complete", func(in string) tool.Result { return tool.Text("https://" + in) }),
		answering(t, "broken", func(string) tool.Result { return tool.Text("https://broken.example/") }, func(s *tool.Spec) {
			s.Verify = func(context.Context, verify.Subject) verify.Verdict { return verify.Absent("never") }
		}),
	}
}

// visits calls visit, and says whether it was let.
func visits(t *testing.T, s *agent.Session, url string) bool {
	t.Helper()
	_, err := begin(t, s).Invoke(context.Background(), "visit", url)
	if !errors.Is(err, tool.ErrDenied) {
		require.NoError(t, err)
		return true
	}
	require.ErrorContains(t, err, "not user-provided")
	require.NotContains(t, err.Error(), url)
	return false
}

func does(t *testing.T, s *agent.Session, name string, in any) tool.Outcome {
	t.Helper()
	out, err := begin(t, s).Invoke(context.Background(), name, in)
	require.NoError(t, err)
	return out
}

func TestOnlyGivenURLs(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	rt := newRuntime(t, agent.Tools(browser(t)...), agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(userProvidedOnly(t)))
	s := newSession(t, rt, agent.Heard("Look at https://First.example:443/a/../b, please.", "and at nothing else"))

	require.True(t, visits(t, s, "https://first.example/b"))
	require.False(t, visits(t, s, "https://first.example/b?q=secret"))
	require.False(t, visits(t, s, "https://first.example/"))
	require.False(t, visits(t, s, "https://later.example/"))
	require.NoError(t, s.Heard(ctx, "now see (https://later.example)"))
	require.True(t, visits(t, s, "https://later.example/"), "a refusal is not remembered for what was given since")

	for _, found := range []string{"https://found.example/page?n=1", "https://json.example/x", "https://source.example/", "https://part.example/?a=1&b=2"} {
		require.False(t, visits(t, s, found))
	}
	does(t, s, "search", "news")
	for _, found := range []string{"https://found.example/page?n=1", "https://json.example/x", "https://source.example/", "https://part.example/?a=1&b=2"} {
		require.True(t, visits(t, s, found), found)
	}
	require.False(t, visits(t, s, "https://found.example/page?n=2"))

	does(t, s, "echo", "https://evil.example/?q=secret")
	does(t, s, "echo", `{"x":"https:\/\/evil.example/?q=secret"}`)
	does(t, s, "complete", "evil.example/?q=secret")
	require.False(t, visits(t, s, "https://evil.example/?q=secret"), "what a result repeats was not given")
	does(t, s, "search", "https://evil.example/?q=secret")
	require.False(t, visits(t, s, "https://evil.example/?q=secret"))
	require.True(t, visits(t, s, "https://found.example/page?n=1"), "beside an echo a result still gives")

	does(t, s, "file_write", tool.Args{"path": "a", "content": "see https://evil.example/?q=secret"})
	does(t, s, "file_read", tool.Args{"path": "a"})
	require.False(t, visits(t, s, "https://evil.example/?q=secret"), "what a call wrote down is not given by reading it")
	require.NoError(t, s.Heard(ctx, "https://evil.example/?q=secret"))
	require.True(t, visits(t, s, "https://evil.example/?q=secret"), "a person may name it all the same")

	_, err := begin(t, s).Invoke(ctx, "broken", "x")
	require.Error(t, err)
	require.False(t, visits(t, s, "https://broken.example/"), "nobody has seen a result that did not verify")
	require.False(t, visits(t, newSession(t, rt), "https://first.example/b"), "another session was not given it")
	require.True(t, visits(t, s, `HTTPS:\\first.example\b`), "a browser goes where it was given")
	for _, made := range []string{
		"http:wrong.example/x", "https:/wrong.example", "https://wr\tong.exa\nmple/", "//wrong.example", `\\wrong.example`, "wrong.com", "first.example.com/b",
		"gopher://wrong.example", "mailto:ann@wrong.example?body=secret", "data:text/html,x", "1.2.3.4/x", "see www.wrong.com there",
	} {
		require.False(t, visits(t, s, made), made)
	}
	require.False(t, visits(t, s, "//first.example/b"), "a host without a scheme was not given")
	require.NoError(t, s.Heard(ctx, "write to mailto:ann@first.example"))
	require.True(t, visits(t, s, "mailto:ann@first.example"))
	does(t, s, "file_write", tool.Args{"path": "b", "content": "see https://ev\nil.example/?q=other"})
	does(t, s, "file_read", tool.Args{"path": "b"})
	require.False(t, visits(t, s, "https://evil.example/?q=other"), "as a browser reads what was written")
	require.False(t, visits(t, s, "visit https://first.example/b and https://other.example/b"))
	require.True(t, visits(t, s, "visit https://first.example/b."))
}

// TestAPlaceWithoutAURL: a call that goes where its arguments say in parts is held against what was given, too.
func TestAPlaceWithoutAURL(t *testing.T) {
	ctx := context.Background()
	parts := func(name string, to tool.Destination) tool.Tool {
		made, err := tool.FromSpec(tool.Spec{
			Name: name, Description: "Asks a host.", EffectClass: effect.Pure, Destination: to,
			Input: json.RawMessage(`{"type":"object","properties":{"host":{"type":"string"},"path":{"type":"string"}},"required":["host","path"],"additionalProperties":false}`),
			Needs: []perm.ResourceAccess{perm.Access(perm.Connect, "https://{host}/{path}")},
			Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
				return tool.Text("ok"), nil
			},
		})
		return mustTool(t, made, err)
	}
	rt := newRuntime(t, agent.Tools(parts("any_host", tool.ModelChosen), parts("our_host", tool.Configured)), agent.Policy(userProvidedOnly(t)))
	s := newSession(t, rt, agent.Heard("https://a.example/x?y=z"))
	for name, wants := range map[string]bool{"a.example/x": true, "a.example/y": false, "b.example/x": false} {
		host, path, _ := strings.Cut(name, "/")
		_, err := begin(t, s).Invoke(ctx, "any_host", tool.Args{"host": host, "path": path})
		require.Equal(t, wants, err == nil, name)
		_, err = begin(t, s).Invoke(ctx, "our_host", tool.Args{"host": host, "path": path})
		require.NoError(t, err, "what a configured service is told goes there")
	}
}

// TestGivenSurvivesTheProcess: another process finds the same, but for what was erased.
func TestGivenSurvivesTheProcess(t *testing.T) {
	ctx, state := context.Background(), filepath.Join(t.TempDir(), "state")
	var token, call string
	for life := range 3 {
		j, err := sqlite.Open(ctx, state)
		require.NoError(t, err)
		rt, err := agent.New(quiet(), agent.Tools(browser(t)...), agent.Policy(userProvidedOnly(t)), agent.Journal(j))
		require.NoError(t, err)
		var s *agent.Session
		if life == 0 {
			s = newSession(t, rt, agent.Heard("https://person.example/"))
			token = s.Token()
			tx := begin(t, s)
			out, err := tx.Invoke(ctx, "search", "news")
			require.NoError(t, err)
			_, err = tx.Invoke(ctx, "echo", "https://evil.example/")
			require.NoError(t, err)
			require.NoError(t, tx.Commit(ctx))
			call = out.Call
		} else {
			s, err = rt.ResumeSession(ctx, token, agent.Heard(fmt.Sprintf("https://life%d.example/", life)))
			require.NoError(t, err)
			require.True(t, visits(t, s, fmt.Sprintf("https://life%d.example/", life)))
		}
		require.True(t, visits(t, s, "https://person.example/"))
		require.False(t, visits(t, s, "https://evil.example/"))
		require.Equal(t, life < 2, visits(t, s, "https://found.example/page?n=1"))
		if life == 1 {
			_, err := rt.Erase(ctx, call, "kim", "asked for")
			require.NoError(t, err)
			require.False(t, visits(t, s, "https://found.example/page?n=1"), "what is erased gives nothing any more, at once")
		}
		require.NoError(t, rt.Close())
		require.NoError(t, j.Close())
	}
}

// TestGivenIsOfTheFamily: sessions that hand grants on speak to one another.
func TestGivenIsOfTheFamily(t *testing.T) {
	ctx := context.Background()
	rt := newRuntime(t, agent.Tools(browser(t)...), agent.Tools(builtin.Files()...), agent.Root("workspace", t.TempDir()), agent.Policy(userProvidedOnly(t)))
	s := newSession(t, rt, agent.Heard("https://person.example/"))
	child, err := s.Delegate(ctx, perm.Principal{ID: "helper"})
	require.NoError(t, err)
	require.True(t, visits(t, child, "https://person.example/"))
	does(t, s, "file_write", tool.Args{"path": "a", "content": "https://evil.example/?q=secret"})
	does(t, child, "file_read", tool.Args{"path": "a"})
	require.False(t, visits(t, child, "https://evil.example/?q=secret"), "what one of them wrote is not given to another that reads it")
	does(t, child, "search", "news")
	require.True(t, visits(t, s, "https://found.example/page?n=1"))
}

// TestMaxUserURLs: what comes after the limit counts as not given.
func TestMaxUserURLs(t *testing.T) {
	ctx := context.Background()
	url := func(i int) string { return fmt.Sprintf("https://a.example/%d", i) }
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(url(i) + " ")
		}
		return b.String()
	}
	lots := answering(t, "lots", func(string) tool.Result { return tool.Text(many(agent.MaxUserURLs + 1)) })
	rt := newRuntime(t, agent.Tools(browser(t)...), agent.Tools(lots), agent.Tools(builtin.Files()...), agent.Root("workspace", t.TempDir()), agent.Policy(userProvidedOnly(t)))
	s := newSession(t, rt)
	require.ErrorIs(t, s.Heard(ctx, many(agent.MaxUserURLs)), tool.ErrInvalid)
	require.False(t, visits(t, s, url(0)))
	does(t, s, "lots", "x")
	require.True(t, visits(t, s, url(0)))
	require.True(t, visits(t, s, url(agent.MaxUserURLs-1)))
	require.False(t, visits(t, s, url(agent.MaxUserURLs)))

	full := newSession(t, rt)
	does(t, full, "file_write", tool.Args{"path": "a", "content": many(agent.MaxUserURLs + 1)})
	does(t, full, "search", "news")
	require.False(t, visits(t, full, "https://found.example/page?n=1"), "what was written can no more be told from what was found")
	require.NoError(t, full.Heard(ctx, "https://found.example/page?n=1"))
	require.True(t, visits(t, full, "https://found.example/page?n=1"))
}

// TestAJournalThatCannotTellRefuses lets the journal fail when it is asked what was given.
func TestAJournalThatCannotTellRefuses(t *testing.T) {
	ctx := context.Background()
	rt := newRuntime(t, agent.Tools(browser(t)...), agent.Policy(userProvidedOnly(t)), agent.Journal(&unreadableJournal{Journal: journal.Memory()}))
	s := newSession(t, rt, agent.Heard("https://person.example/"))
	_, err := begin(t, s).Invoke(ctx, "visit", "https://person.example/")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.ErrorContains(t, err, "the disk is gone")
	_, err = begin(t, s).Invoke(ctx, "visit", "nowhere")
	require.NoError(t, err, "a call that names no URL needs nobody to look")
}

type unreadableJournal struct{ journal.Journal }

func (j *unreadableJournal) Entries(ctx context.Context, q journal.Query) iter.Seq2[record.Entry, error] {
	for _, k := range q.Kinds {
		if k == record.KindHeard {
			return func(yield func(record.Entry, error) bool) { yield(record.Entry{}, errors.New("the disk is gone")) }
		}
	}
	return j.Journal.Entries(ctx, q)
}
