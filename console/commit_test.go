package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/console"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// gate lets everything run, and asks at the commit. A tool named mail is held.
type gate struct{}

func (gate) DecidesCommits() bool { return true }

func (gate) Decide(_ context.Context, r perm.Request) (perm.Decision, error) {
	effect := perm.Allow
	switch {
	case r.Purpose == perm.PurposeCommit:
		effect = perm.Ask
	case r.Tool.Name == "mail":
		effect = perm.Hold
	}
	return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: "one <b>look", At: "rules.rego:7"}}, Revision: "1"}), nil
}

func hinted() console.Options {
	return console.Options{Hint: func(args ...string) string { return "remit " + strings.Join(args, " ") }}
}

// waitingCommit returns a transaction whose commit waits.
func (p *place) waitingCommit(calls ...tool.Args) *agent.Txn {
	p.t.Helper()
	tx, err := p.session.Begin(p.t.Context())
	require.NoError(p.t, err)
	for _, args := range calls {
		_, err = tx.Invoke(p.t.Context(), "file_write", args)
		require.NoError(p.t, err)
	}
	require.ErrorIs(p.t, tx.Commit(p.t.Context()), tool.ErrPending)
	return tx
}

// commitForm is the form of the page of a commit.
func (p *place) commitForm(txn, answer string) url.Values {
	page := p.page("/commit?id=" + txn)
	return url.Values{"form": {field(p.t, page, "form")}, "id": {txn}, "request": {field(p.t, page, "request")}, "answer": {answer}}
}

// TestApproveCommit: a commit that waits is among what waits, its page shows what
// it is about, and an approval lets it through. The page stays readable.
func TestApproveCommit(t *testing.T) {
	p := newPlace(t, hinted(), agent.Policy(gate{}))
	tx := p.waitingCommit(tool.Args{"path": "a.txt", "content": "one\n"})
	page := p.page("/")
	for _, want := range []string{"Waiting for you (1)", "of all changes of transaction " + tx.ID(), "/commit?id=" + tx.ID()} {
		require.Contains(t, page, want)
	}
	require.Contains(t, p.page("/timeline"), "see and answer its commit")
	page = p.page("/commit?id=" + tx.ID())
	for _, want := range []string{"waits for you", "one &lt;b&gt;look", "rules.rego:7", `<td class="t">one</td>`, "1 effect", "Deny and revert"} {
		require.Contains(t, page, want)
	}
	to := p.location(p.do(p.post("/commit", p.commitForm(tx.ID(), "approve"))))
	require.Contains(t, p.page(to), "approved by person; its process continues at its next commit")
	require.NotContains(t, p.page(to), `name="answer"`)
	require.Contains(t, p.page("/"), "Answered, not resumed yet")
	require.NotContains(t, p.page("/timeline"), "see and answer its commit")
	require.NoError(t, tx.Commit(t.Context()))
	require.Contains(t, p.page("/"), "Waiting for you (0)")
	require.Contains(t, p.page(to), "The transaction is committed. approved by person")
}

// TestDenyCommit: a denial with its reason reverts the transaction at its next
// commit, also on a console that takes no approvals.
func TestDenyCommit(t *testing.T) {
	o := hinted()
	o.CheckApproval = func(_ context.Context, id string, askers []json.RawMessage) error {
		require.NotEmpty(t, id)
		return errors.New("only at a terminal")
	}
	p := newPlace(t, o, agent.Policy(gate{}))
	tx := p.waitingCommit(tool.Args{"path": "a.txt", "content": "one\n"})
	page := p.page("/commit?id=" + tx.ID())
	require.Contains(t, page, "only at a terminal")
	require.Contains(t, page, "remit pending "+tx.ID())
	require.NotContains(t, page, `value="approve"`)
	w := p.do(p.post("/commit", p.commitForm(tx.ID(), "approve")))
	require.Equal(t, http.StatusForbidden, w.Code)
	require.NotContains(t, p.page("/"), "approved by")

	f := p.commitForm(tx.ID(), "deny")
	f.Set("why", "not <i>this")
	to := p.location(p.do(p.post("/commit", f)))
	require.Contains(t, p.page(to), "denied by person: not &lt;i&gt;this")
	require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrDenied)
	require.Equal(t, "(none)", p.content("a.txt"))
	require.Contains(t, p.page(to), "The transaction is reverted. denied by person")
}

// TestCommitReplay: an answer is about the request that the person saw. After the
// transaction changed, and after an answer, no older form counts.
func TestCommitReplay(t *testing.T) {
	p := newPlace(t, hinted(), agent.Policy(gate{}))
	tx := p.waitingCommit(tool.Args{"path": "a.txt", "content": strings.Repeat("harmless\n", 400)})
	old := p.commitForm(tx.ID(), "approve")
	lines := "/diff?id=" + tx.ID() + "&file=0&request=" + url.QueryEscape(old.Get("request"))
	require.Contains(t, p.page("/commit?id="+tx.ID()), "request=sha256") // its lines are loaded when a person opens them
	require.Contains(t, p.page(lines), "harmless")

	_, err := tx.Invoke(t.Context(), "file_write", tool.Args{"path": "a.txt", "content": "evil\n"})
	require.NoError(t, err)
	require.Contains(t, p.page("/commit?id="+tx.ID()), "The transaction has changed since it was asked about")
	require.NotContains(t, p.page("/commit?id="+tx.ID()), `name="answer"`)
	require.Equal(t, http.StatusConflict, p.do(p.get(lines)).Code, "lines of another request")
	w := p.do(p.post("/commit", old))
	require.Equal(t, http.StatusConflict, w.Code, "before it asks again")

	require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrPending)
	w = p.do(p.post("/commit", old))
	require.Equal(t, http.StatusConflict, w.Code, "after it asked again")
	require.Contains(t, w.Body.String(), "asks for something else now")
	require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrPending)

	now := p.commitForm(tx.ID(), "approve")
	second := p.commitForm(tx.ID(), "deny") // another tab
	p.location(p.do(p.post("/commit", now)))
	for _, f := range []url.Values{now, second} {
		w = p.do(p.post("/commit", f))
		require.Equal(t, http.StatusConflict, w.Code)
		require.Contains(t, w.Body.String(), "answered already")
	}
	_, err = tx.Invoke(t.Context(), "file_write", tool.Args{"path": "b.txt", "content": "later\n"})
	require.NoError(t, err)
	require.Contains(t, p.page("/commit?id="+tx.ID()), "The transaction has changed since it was asked about", "the approval does not cover it")
	require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrPending)
	require.Equal(t, http.StatusConflict, p.do(p.post("/commit", now)).Code)
}

// TestCommitAttacks: what another page or a broken form sends answers nothing.
func TestCommitAttacks(t *testing.T) {
	p := newPlace(t, hinted(), agent.Policy(gate{}))
	tx := p.waitingCommit(tool.Args{"path": "a.txt", "content": "one\n"})
	good := p.commitForm(tx.ID(), "approve")
	with := func(name string, values ...string) *http.Request {
		f := url.Values{}
		for k, v := range good {
			f[k] = v
		}
		f[name] = values
		return p.post("/commit", f)
	}
	from := func(name, value string) *http.Request {
		r := p.post("/commit", good)
		r.Header.Set(name, value)
		return r
	}
	for name, r := range map[string]*http.Request{
		"no token": with("form"), "another token": with("form", "x"), "two tokens": with("form", good.Get("form"), "x"),
		"another origin": from("Origin", "http://evil.example"), "a hidden origin": from("Origin", "null"), "another site": from("Sec-Fetch-Site", "cross-site"),
		"no cookie": from("Cookie", ""), "GET": p.get("/commit?" + good.Encode()), "no request": with("request"), "another request": with("request", "sha256:00"),
		"no answer": with("answer"), "another answer": with("answer", "yes"), "a call as the transaction": with("id", "c_none"), "no transaction": with("id"),
		"the form of calls": p.post("/approve", good), "a long reason": with("why", strings.Repeat("x", 3000)),
	} {
		p.do(r)
		require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrPending, name)
		require.Contains(t, p.page("/commit?id="+tx.ID()), "waits for you", name)
	}
	p.pass(30 * 24 * time.Hour)
	p.cookie = p.enter()
	require.Contains(t, p.page("/commit?id="+tx.ID()), "It is too late to answer")
}

// TestCommitHeld: the page shows the arguments of the calls that the commit runs,
// without sensitive ones. It takes no approval of what it does not show.
func TestCommitHeld(t *testing.T) {
	sent := 0
	mail, err := tool.FromSpec(tool.Spec{
		Name: "mail", Description: "Sends a mail.", EffectClass: effect.Deferrable, Hints: tool.Hints{Sensitive: []string{"password"}},
		Input: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"},"password":{"type":"string"}},"additionalProperties":false}`),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			sent++
			return tool.Text("sent"), nil
		},
	})
	require.NoError(t, err)
	p := newPlace(t, hinted(), agent.Policy(gate{}), agent.Tools(mail))
	hold := func(to string) *agent.Txn {
		tx, err := p.session.Begin(t.Context())
		require.NoError(t, err)
		out, _ := tx.Invoke(t.Context(), "mail", tool.Args{"to": to, "password": "hunter2"})
		require.Equal(t, tool.StatusHeld, out.Status)
		require.ErrorIs(t, tx.Commit(t.Context()), tool.ErrPending)
		return tx
	}
	tx := hold("ann<script>")
	page := p.page("/commit?id=" + tx.ID())
	require.Contains(t, page, "What the commit runs")
	require.Contains(t, page, "ann&lt;script&gt;")
	require.NotContains(t, page, "hunter2")
	require.Zero(t, sent)
	p.location(p.do(p.post("/commit", p.commitForm(tx.ID(), "approve"))))
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, 1, sent)

	page = p.page("/commit?id=" + hold(strings.Repeat("x", 70<<10)).ID())
	require.Contains(t, page, "longer than this page shows")
	require.NotContains(t, page, `value="approve"`)
}
