package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/console"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// TestApprove: a person sees the request and its difference, answers, and the
// page stays readable. The list and the page agree.
func TestApprove(t *testing.T) {
	p := newPlace(t, console.Options{})
	out := p.write("other.txt", "one\ntwo\n")
	require.Equal(t, tool.StatusPending, out.Status)
	require.Contains(t, p.page("/"), "Waiting for you (1)")
	page := p.page("/approve?id=" + out.Call)
	for _, want := range []string{"coder", "the rules say so", "rules.rego:7", "other.txt", `<td class="t">two</td>`, "waits for you"} {
		require.Contains(t, page, want)
	}
	form := url.Values{"form": {p.form()}, "id": {out.Call}, "request": {field(t, page, "request")}, "shown": {field(t, page, "shown")}, "answer": {"approve"}, "scope": {"once"}, "why": {"it is fine"}}
	stale := url.Values{"form": form["form"], "id": form["id"], "request": {"sha256:0"}, "answer": {"approve"}, "scope": {"once"}}
	require.Equal(t, http.StatusConflict, p.do(p.post("/approve", stale)).Code)
	require.Contains(t, p.page("/"), "Waiting for you (1)")

	require.Equal(t, "/approve?id="+out.Call, p.location(p.do(p.post("/approve", form))))
	page = p.page("/approve?id=" + out.Call)
	require.Contains(t, page, "approved by person: it is fine")
	require.Contains(t, page, "the rules say so", "the request stays readable")
	require.NotContains(t, page, `name="answer"`)
	now := p.page("/")
	require.Contains(t, now, "approved by person")
	require.Contains(t, now, "Answered, not resumed yet")
	require.Contains(t, now, "Waiting for you (0)")
	require.Equal(t, http.StatusConflict, p.do(p.post("/approve", form)).Code, "an answer counts once")
}

// TestApproveWhatWasShown: an approval of another difference than the page shows
// is not taken, and the page shows the new difference.
func TestApproveWhatWasShown(t *testing.T) {
	p := newPlace(t, console.Options{})
	p.own("other.txt", "old line\n")
	out := p.write("other.txt", "new line\n")
	require.Equal(t, tool.StatusPending, out.Status)
	page := p.page("/approve?id=" + out.Call)
	require.Contains(t, page, "old line")
	form := url.Values{"form": {p.form()}, "id": {out.Call}, "request": {field(t, page, "request")}, "shown": {field(t, page, "shown")}, "answer": {"approve"}, "scope": {"once"}}
	p.own("other.txt", "another line\n")
	to := p.location(p.do(p.post("/approve", form)))
	page = p.page(to)
	require.Contains(t, page, "Nothing was answered")
	require.Contains(t, page, "another line")
	require.Contains(t, p.page("/"), "Waiting for you (1)")
	form.Del("shown")
	require.Equal(t, to, p.location(p.do(p.post("/approve", form))))
	form.Set("shown", field(t, page, "shown"))
	require.Equal(t, "/approve?id="+out.Call, p.location(p.do(p.post("/approve", form))))
	require.Contains(t, p.page("/"), "Waiting for you (0)")

	p.own("other.txt", "old line\n")
	out = p.write("other.txt", "new line\n")
	page = p.page("/approve?id=" + out.Call)
	p.own("other.txt", "another line\n")
	form = url.Values{"form": {p.form()}, "id": {out.Call}, "request": {field(t, page, "request")}, "shown": {field(t, page, "shown")}, "answer": {"deny"}}
	require.Equal(t, "/approve?id="+out.Call, p.location(p.do(p.post("/approve", form))), "a denial changes no file")
}

// TestApproveInAnotherFolder: another folder at the path of the root says
// nothing about what the call would change.
func TestApproveInAnotherFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "workspace")
	require.NoError(t, os.Mkdir(dir, 0o700))
	p := newPlace(t, console.Options{}, agent.Root("files", dir))
	out := p.call("file_write", tool.Args{"root": "files", "path": "other.txt", "content": "new"})
	require.Equal(t, tool.StatusPending, out.Status)
	require.NoError(t, os.Rename(dir, dir+".was"))
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.txt"), []byte("foreign line"), 0o600))
	page := p.page("/approve?id=" + out.Call)
	require.NotContains(t, page, "foreign line")
	require.Contains(t, page, "another folder is at "+dir+" now")
}

// TestDeny: a denied call is told to be denied.
func TestDeny(t *testing.T) {
	p := newPlace(t, console.Options{})
	out := p.write("other.txt", "x")
	page := p.page("/approve?id=" + out.Call)
	form := url.Values{"form": {p.form()}, "id": {out.Call}, "request": {field(t, page, "request")}, "answer": {"deny"}}
	p.location(p.do(p.post("/approve", form)))
	require.Contains(t, p.page("/approve?id="+out.Call), "denied by person")
	for _, bad := range []url.Values{{"answer": {"maybe"}}, {"answer": {"approve"}}} {
		other := p.write("more.txt", "x")
		page := p.page("/approve?id=" + other.Call)
		bad.Set("form", p.form())
		bad.Set("id", other.Call)
		bad.Set("request", field(t, page, "request"))
		bad.Set("shown", field(t, page, "shown"))
		require.Equal(t, http.StatusBadRequest, p.do(p.post("/approve", bad)).Code)
	}
}

// TestApproveSession: an approval for the session lets the next call through.
func TestApproveSession(t *testing.T) {
	p := newPlace(t, console.Options{})
	out := p.write("other.txt", "x")
	page := p.page("/approve?id=" + out.Call)
	form := url.Values{"form": {p.form()}, "id": {out.Call}, "request": {field(t, page, "request")}, "shown": {field(t, page, "shown")}, "answer": {"approve"}, "scope": {"session"}, "for": {"10m"}}
	for _, bad := range []string{"", "9999h", "-1h"} {
		form.Set("for", bad)
		require.Equal(t, http.StatusBadRequest, p.do(p.post("/approve", form)).Code)
	}
	form.Set("for", "10m")
	p.location(p.do(p.post("/approve", form)))
	require.Equal(t, tool.StatusDone, p.write("other.txt", "y").Status)
	require.Equal(t, tool.StatusPending, p.write("third.txt", "y").Status, "another access")

	grants, err := p.rt.Grants(t.Context())
	require.NoError(t, err)
	require.Len(t, grants, 1)
	require.WithinDuration(t, time.Now().Add(10*time.Minute), grants[0].Expires, time.Minute)
	page = p.page("/grants")
	require.Contains(t, page, "Valid now (1)")
	require.Contains(t, page, "other.txt")
	require.Equal(t, http.StatusForbidden, p.do(p.post("/revoke", url.Values{"id": {grants[0].ID}})).Code, "without the token of the page")
	require.Contains(t, p.page("/grants"), "Valid now (1)")
	p.location(p.do(p.post("/revoke", url.Values{"form": {p.form()}, "id": {grants[0].ID}})))
	require.Contains(t, p.page("/grants"), "Valid now (0)")
	require.Contains(t, p.page("/grants"), "by person")
	require.Equal(t, tool.StatusPending, p.write("other.txt", "z").Status)
	require.Equal(t, http.StatusNotFound, p.do(p.post("/revoke", url.Values{"form": {p.form()}, "id": {"g_none"}})).Code)
}

// TestApproveSameArguments: an approval for the same arguments lets no others
// through, and one for every session counts in another one.
func TestApproveSameArguments(t *testing.T) {
	p := newPlace(t, console.Options{})
	out := p.write("other.txt", "x")
	page := p.page("/approve?id=" + out.Call)
	form := url.Values{"form": {p.form()}, "id": {out.Call}, "request": {field(t, page, "request")}, "shown": {field(t, page, "shown")}, "answer": {"approve"}, "scope": {"always"}, "for": {"1h"}, "same": {"1"}}
	p.location(p.do(p.post("/approve", form)))
	require.Contains(t, p.page("/grants"), "only with the arguments that were approved")
	require.Equal(t, tool.StatusPending, p.write("other.txt", "y").Status)
	var err error
	p.session, err = p.rt.Session(t.Context(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	require.Equal(t, tool.StatusDone, p.write("other.txt", "x").Status)
}

// TestWhy: the page of a call leads to the explanation of its decision, which
// shows no call with sensitive arguments.
func TestWhy(t *testing.T) {
	p := newPlace(t, console.Options{Explain: func(_ context.Context, call string) (string, error) {
		return "because <b> of " + call, nil
	}})
	out := p.call("file_delete", tool.Args{"path": "notes.txt"})
	require.Contains(t, p.page("/call?id="+out.Call), `href="/why?id=`+out.Call)
	require.Contains(t, p.page("/why?id="+out.Call), "because &lt;b&gt; of "+out.Call)
	require.Equal(t, http.StatusNotFound, p.do(p.get("/why?id=c_none")).Code)
	without := newPlace(t, console.Options{})
	out = without.call("file_delete", tool.Args{"path": "notes.txt"})
	require.NotContains(t, without.page("/call?id="+out.Call), `href="/why`)
	require.Equal(t, http.StatusNotFound, without.do(without.get("/why?id="+out.Call)).Code)
}

// TestTakeBack: the plan changes nothing, the form does what the plan says and
// shows each path, and a redo brings it back.
func TestTakeBack(t *testing.T) {
	p := newPlace(t, console.Options{})
	p.write("notes.txt", "one\n")
	out := p.write("notes.txt", "two\n")
	plan := p.page("/revert?id=" + out.Txn)
	require.Contains(t, plan, "Nothing has been changed yet")
	require.Contains(t, plan, "notes.txt")
	require.Equal(t, "two\n", p.content("notes.txt"))

	report := p.location(p.do(p.post("/revert", url.Values{"form": {p.form()}, "id": {out.Txn}, "plan": {field(t, plan, "plan")}})))
	require.Equal(t, "one\n", p.content("notes.txt"))
	page := p.page(report)
	require.Contains(t, page, "Everything was taken back")
	require.Contains(t, page, "restored")
	_, again, found := strings.Cut(page, `href="/redo?id=`)
	require.True(t, found)
	again, _, _ = strings.Cut(again, `"`)
	require.Contains(t, p.page("/redo?id="+again), "notes.txt")
	require.Contains(t, p.page("/call?id="+out.Call), "It is reverted")

	report = p.location(p.do(p.post("/redo", url.Values{"form": {p.form()}, "id": {again}})))
	require.Contains(t, p.page(report), "Everything was redone")
	require.Equal(t, "two\n", p.content("notes.txt"))
}

// TestConflict: a file that changed since stays, unless the person sees that plan
// and wants it.
func TestConflict(t *testing.T) {
	p := newPlace(t, console.Options{})
	out := p.write("notes.txt", "theirs\n")
	p.own("notes.txt", "mine\n")
	plan := p.page("/revert?id=" + out.Txn)
	require.Contains(t, plan, "conflict")
	require.NotContains(t, plan, "Take back as planned", "nothing would be done")
	require.Contains(t, plan, "overwrites what changed since")
	forced := p.page("/revert?id=" + out.Txn + "&force=1")
	require.Contains(t, forced, "over a version that another actor left")
	require.Equal(t, "mine\n", p.content("notes.txt"))
	form := url.Values{"form": {p.form()}, "id": {out.Txn}, "plan": {field(t, forced, "plan")}}
	require.Contains(t, p.location(p.do(p.post("/revert", form))), "changed=1", "the plan was one with force")
	require.Equal(t, "mine\n", p.content("notes.txt"))
	form.Set("force", "1")
	require.Contains(t, p.location(p.do(p.post("/revert", form))), "/report")
	require.Equal(t, "(none)", p.content("notes.txt"))
}

// TestStalePlan: a plan counts for what the person saw.
func TestStalePlan(t *testing.T) {
	p := newPlace(t, console.Options{})
	out := p.write("notes.txt", "theirs\n")
	plan := p.page("/revert?id=" + out.Txn)
	p.own("notes.txt", "mine\n")
	to := p.location(p.do(p.post("/revert", url.Values{"form": {p.form()}, "id": {out.Txn}, "plan": {field(t, plan, "plan")}})))
	require.Contains(t, p.page(to), "Nothing was done")
	require.Equal(t, "mine\n", p.content("notes.txt"))
}

// TestPrompt: a prompt is taken back as a whole, and single files of it alone.
func TestPrompt(t *testing.T) {
	p := newPlace(t, console.Options{})
	tx, err := p.session.Begin(t.Context(), agent.ForPrompt(agent.Prompt{Client: "claude-code", ID: "p-1", Text: "write some notes"}))
	require.NoError(t, err)
	for _, name := range []string{"notes1.txt", "notes2.txt"} {
		_, err := tx.Invoke(t.Context(), "file_write", tool.Args{"path": name, "content": "x\n"})
		require.NoError(t, err)
	}
	require.NoError(t, tx.Commit(t.Context()))
	require.Contains(t, p.page("/"), "write some notes")
	plan := p.page("/revert?id=p-1")
	require.Contains(t, plan, "notes1.txt")
	one := url.Values{"id": {"p-1"}, "file": {"file://workspace/notes1.txt"}}
	plan = p.page("/revert?" + one.Encode())
	one.Set("form", p.form())
	one.Set("plan", field(t, plan, "plan"))
	p.location(p.do(p.post("/revert", one)))
	require.Equal(t, "(none)", p.content("notes1.txt"))
	require.Equal(t, "x\n", p.content("notes2.txt"))
}

// TestTimeline: pages, filters and search find the same calls.
func TestTimeline(t *testing.T) {
	p := newPlace(t, console.Options{})
	for i := range 60 {
		p.write("notes.txt", strings.Repeat("x", i+1)+" word"+string(rune('a'+i%26))+"\n")
	}
	p.call("file_delete", tool.Args{"path": "notes.txt"})
	p.write(`notes "quoted" <b>.txt`, "needle\n")
	seen, at := 0, "/timeline"
	for at != "" {
		page := p.page(at)
		seen += strings.Count(page, `<li class="call">`)
		_, next, more := strings.Cut(page, `rel="next" href="`)
		next, _, _ = strings.Cut(next, `"`)
		at = strings.ReplaceAll(next, "&amp;", "&")
		if !more {
			at = ""
		}
	}
	require.Equal(t, 62, seen)
	for query, want := range map[string]int{
		"outcome=denied": 1, "tool=delete": 1, "q=needle": 1, "path=quoted": 1, "path=" + url.QueryEscape(`"quoted" <b>`): 1, "q=nosuchword": 0, "tool=nosuch": 0,
		"from=2001-01-01T00:00&to=2001-01-02T00:00": 0, "outcome=done&q=needle&tool=write": 1,
	} {
		require.Equal(t, want, strings.Count(p.page("/timeline?"+query), `<li class="call">`), query)
	}
	require.Equal(t, 25, strings.Count(p.page("/timeline?q=word"), `<li class="call">`))
}

// TestPolicy: the page counts the calls of each rule, and leads to them.
func TestPolicy(t *testing.T) {
	p := newPlace(t, console.Options{})
	for range 3 {
		p.write("notes.txt", "x")
	}
	p.call("file_delete", tool.Args{"path": "notes.txt"})
	page := p.page("/policy")
	require.Contains(t, page, `<span class="status good">allow</span>`)
	require.Contains(t, page, `<span class="status bad">deny</span>`)
	require.Contains(t, page, "3 calls")
	require.Contains(t, page, "1 call ")
	require.Equal(t, 4, strings.Count(p.page("/timeline?q=rules.rego%3A7"), `<li class="call">`))
}

// TestSensitive: no page shows a sensitive argument, and no search finds it.
func TestSensitive(t *testing.T) {
	login, err := tool.FromSpec(tool.Spec{
		Name: "login", Description: "Logs in.", EffectClass: effect.Pure, Hints: tool.Hints{Sensitive: []string{"password"}},
		Input: json.RawMessage(`{"type":"object","properties":{"user":{"type":"string"},"password":{"type":"string"}},"additionalProperties":false}`),
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Text("hello"), nil
		},
	})
	require.NoError(t, err)
	explains := func(context.Context, string) (string, error) { return "password is hunter2", nil }
	p := newPlace(t, console.Options{Explain: explains}, agent.Tools(login))
	out := p.call("login", tool.Args{"user": "ann", "password": "hunter2"})
	for _, path := range []string{"/", "/timeline", "/call?id=" + out.Call, "/timeline?q=ann", "/why?id=" + out.Call} {
		require.NotContains(t, p.page(path), "hunter2")
	}
	require.Contains(t, p.page("/call?id="+out.Call), "(hidden)")
	require.NotContains(t, p.page("/timeline?q=hunter"), `<li class="call">`)
}

// TestDiff: files are folded if they are long, gaps are counted, and a file has
// a page of its own.
func TestDiff(t *testing.T) {
	p := newPlace(t, console.Options{})
	above, below := "", ""
	for i := range 100 {
		above += fmt.Sprintf("above %d\n", i)
		below += fmt.Sprintf("below %d\n", i)
	}
	p.write("notes.txt", above+"old\n"+below)
	out := p.write("notes.txt", "first\n"+above+"new\n"+below)
	page := p.page("/diff?id=" + out.Txn)
	require.Contains(t, page, `<td class="t">new</td>`)
	require.Contains(t, page, "equal lines")
	big := p.write("notes-big.txt", strings.Repeat("line\n", 2000))
	page = p.page("/diff?id=" + big.Txn)
	require.NotContains(t, page, `<tr class="add">`)
	require.Contains(t, page, "2000 lines")
	require.Equal(t, 2000, strings.Count(p.page("/diff?id="+big.Txn+"&file=0"), `<tr class="add">`))
	bin := p.write("notes.bin", "\x00\x01")
	require.Contains(t, p.page("/diff?id="+bin.Txn), "sha256:")
}

// TestUnknown: what is not there has a page that says so.
func TestUnknown(t *testing.T) {
	p := newPlace(t, console.Options{})
	for _, path := range []string{"/call?id=c_none", "/call", "/diff?id=t_none", "/revert?id=none", "/redo?id=none", "/approve?id=c_none", "/report?n=7", "/nosuch", "/assets/nosuch"} {
		w := p.do(p.get(path))
		require.Equal(t, http.StatusNotFound, w.Code, path+": "+w.Body.String())
		require.Contains(t, w.Body.String(), "<h1>", path)
	}
}

// TestOptions: a console without its required options is refused.
func TestOptions(t *testing.T) {
	p := newPlace(t, console.Options{})
	for _, o := range []console.Options{{}, {Runtime: p.rt, By: "x"}, {Runtime: p.rt, Host: "localhost", By: "x"}, {Runtime: p.rt, Host: "a:0", By: "x"}, {Runtime: p.rt, Host: "a:08", By: "x"}, {Runtime: p.rt, Host: "a:80"}} {
		_, err := console.New(o)
		require.Error(t, err)
	}
}

// TestTimelineOfPrincipal: the timeline of one principal leaves out the others,
// on each of its pages.
func TestTimelineOfPrincipal(t *testing.T) {
	p := newPlace(t, console.Options{})
	other, err := p.rt.Session(t.Context(), perm.Principal{ID: "re<i>viewer"})
	require.NoError(t, err)
	for range 30 {
		p.write("notes.txt", "theirs\n")
		_, err = other.Call(t.Context(), "file_write", tool.Args{"path": "notes.txt", "content": "own\n"})
		require.NoError(t, err)
	}
	seen := 0
	for at := "/timeline?principal=re%3Ci%3Eview"; at != ""; {
		page := p.page(at)
		require.NotContains(t, page, "coder")
		require.Contains(t, page, `value="re&lt;i&gt;view"`)
		seen += strings.Count(page, `<li class="call">`)
		_, next, _ := strings.Cut(page, `rel="next" href="`)
		next, _, _ = strings.Cut(next, `"`)
		at = strings.ReplaceAll(next, "&amp;", "&")
	}
	require.Equal(t, 30, seen)
	require.Zero(t, strings.Count(p.page("/timeline?principal=nobody"), `<li class="call">`))
	require.Equal(t, 1, strings.Count(p.page("/timeline?principal=coder&outcome=done&from=2001-01-01T00:00&path=notes"), "Calls</h2>"))
}

// TestTakeBackOffered: a revert is offered only of what left something that it
// takes back.
func TestTakeBackOffered(t *testing.T) {
	p := newPlace(t, console.Options{})
	p.own("notes.txt", "mine\n")
	read := p.call("file_read", tool.Args{"path": "notes.txt"})
	denied := p.call("file_delete", tool.Args{"path": "notes.txt"})
	write := p.write("notes.txt", "theirs\n")
	offers := func(id, txn string) bool {
		at := []string{p.page("/call?id=" + id), p.page("/diff?id=" + id), p.page("/diff?id=" + txn), p.page("/timeline?txn=" + txn)}
		for _, page := range at {
			require.Equal(t, strings.Contains(at[0], `href="/revert`), strings.Contains(page, `href="/revert`), page)
		}
		return strings.Contains(at[0], `href="/revert`)
	}
	require.False(t, offers(read.Call, read.Txn))
	require.False(t, offers(denied.Call, denied.Txn))
	require.True(t, offers(write.Call, write.Txn))
	_, err := p.rt.Revert(t.Context(), write.Txn, revert.Options{By: "person"})
	require.NoError(t, err)
	require.False(t, offers(write.Call, write.Txn))
}

// TestHealth: the page shows the newest checks, which run only when a person asks
// for them, and ends the visits of other browsers.
func TestHealth(t *testing.T) {
	ran := 0
	p := newPlace(t, console.Options{Diagnose: func(context.Context) ([]console.Check, error) {
		ran++
		return []console.Check{
			{Where: "system", Name: "version", State: "ok", What: "1"}, {Where: "root", Name: "trash", State: "weaker", What: "<b>slow", Fix: "use <i>another"}, {Where: "root", Name: "x", State: "failed", What: "gone"},
		}, nil
	}})
	p.write("notes.txt", "x")
	page := p.page("/health")
	checkPage(t, "/health", page)
	require.Contains(t, page, "Check the machine")
	require.Equal(t, http.StatusForbidden, p.do(p.post("/health", url.Values{})).Code)
	require.Zero(t, ran, "neither a page nor a form without its token runs checks")
	require.Equal(t, "/health", p.location(p.do(p.post("/health", url.Values{"form": {p.form()}}))))
	page = p.page("/health")
	checkPage(t, "/health", page)
	require.Equal(t, 1, ran)
	for _, want := range []string{"1 failed", "1 weaker", "&lt;b&gt;slow", "use &lt;i&gt;another", "this browser"} {
		require.Contains(t, page, want)
	}

	other := *p
	other.cookie = p.enter()
	secret := p.token()
	require.Contains(t, p.page("/health"), "1 printed address is not used yet")
	require.Equal(t, "/health", p.location(p.do(p.post("/visits", url.Values{"form": {p.form()}}))))
	require.Equal(t, http.StatusUnauthorized, other.do(other.get("/")).Code)
	require.Equal(t, http.StatusForbidden, p.do(p.post("/enter", url.Values{"token": {secret}})).Code)
	require.Contains(t, p.page("/health"), "All printed addresses were used")

	without := newPlace(t, console.Options{})
	require.Contains(t, without.page("/health"), "no checks")
	require.Equal(t, http.StatusNotFound, without.do(without.post("/health", url.Values{"form": {without.form()}})).Code)
}

// TestPromptDiff: the difference of a prompt has that of each of its transactions,
// in their order.
func TestPromptDiff(t *testing.T) {
	p := newPlace(t, console.Options{})
	prompt := agent.Prompt{Client: "claude-code", ID: "p-1", Text: "do it"}
	write := func(path string) string {
		tx, err := p.session.Begin(t.Context(), agent.ForPrompt(prompt))
		require.NoError(t, err)
		_, err = tx.Invoke(t.Context(), "file_write", tool.Args{"path": path, "content": path + "\n"})
		require.NoError(t, err)
		require.NoError(t, tx.Commit(t.Context()))
		return tx.ID()
	}
	first := write("notes1.txt")
	require.Contains(t, p.page("/timeline"), `href="/diff?id=p-1"`)
	page := p.page("/diff?id=p-1")
	require.Contains(t, page, `<td class="t">notes1.txt</td>`)
	second := write("notes2.txt")
	page = p.page("/diff?id=p-1")
	checkPage(t, "/diff", page)
	require.Contains(t, page, "Difference of a prompt")
	require.Less(t, strings.Index(page, first), strings.Index(page, second))
	require.Contains(t, page, `<td class="t">notes1.txt</td>`)
	require.Contains(t, page, `<td class="t">notes2.txt</td>`)
	require.Equal(t, 2, strings.Count(page, `<details class="file"`))
	require.Contains(t, page, `href="/revert?id=p-1"`)
}
