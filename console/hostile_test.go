package console_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/console"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// hostileTexts are texts that an agent could write: 200, and a few huge ones.
func hostileTexts() []string {
	marks := []string{
		`<script>document.title="in"</script>`, `</script><script>document.title="in"</script>`, `<img src=x onerror="document.title='in'">`, `<svg onload=document.title='in'>`,
		`"><script>document.title="in"</script>`, `'><b onmouseover=document.title='in'>`, `" onfocus="document.title='in'" autofocus="`, `' onfocus='document.title="in"' autofocus='`,
		"` onfocus=`document.title=1`", `javascript:document.title="in"`, `JaVaScRiPt:document.title='in'`, `data:text/html,<script>document.title="in"</script>`,
		`<iframe src="http://evil.example/"></iframe>`, `<base href="http://evil.example/">`, `<meta http-equiv="refresh" content="0;url=http://evil.example/">`, `<link rel=stylesheet href=http://evil.example/x.css>`,
		`<style>*{display:none}</style>`, `<form action="http://evil.example/"><input name=form>`, `</form><form action="/revert" method=post>`, `<input type=hidden name=form value=x>`,
		`</td></tr></table><h1>done</h1>`, `</main></body></html>`, `<!--`, `-->`, `<![CDATA[`, `]]>`, `<?php echo 1 ?>`, `<plaintext>`, `<textarea>`, `</textarea>`, `<title>`, `</title><script>1</script>`,
		`<noscript><p title="</noscript><img src=x onerror=1>">`, `<math><mtext></mtext><mglyph><style><img src=x onerror=1>`, `<template><script>1</script></template>`, `<details open ontoggle=document.title='in'>`,
		`<a href="javascript:1">x</a>`, `<object data=x>`, `<embed src=x>`, `<body onload=1>`, `&lt;script&gt;`, `&#60;script&#62;1&#60;/script&#62;`, `&quot; onclick=1`, `\u003cscript\u003e`, `\x3cscript\x3e`, `%3Cscript%3E`, `{{.Form}}`, `{{template "main" .}}`, `${document.title}`,
		"\u202etxt.exe", "\u2066a\u2069", "\u200bzero\u200dwidth\ufeff", "a\x00b", "\x1b[2J\x1b]0;in\x07", "\r\nSet-Cookie: a=b", "line\nline\n", "\u2028\u2029", "\xff\xfe\x80", "e" + strings.Repeat("\u0301", 200), "\U000e0041\U000e007f",
		"../../../etc/passwd", "/etc/passwd", "C:\\x", "a?b=c&d=e#f", "a&amp;b", "a;b", "a'b", `a"b`, "a`b", "a\\b", "=cmd|' /C calc'!A0", "diff --git a/x b/x", "@@ -1 +1 @@", "--- a", "+++ b", "\\ No newline at end of file", "GIT binary patch",
	}
	all := slices.Clone(marks)
	for i := 0; len(all) < 195; i++ {
		one, other := marks[i%len(marks)], marks[(i*7+3)%len(marks)]
		all = append(all, one+other+"\n"+one)
	}
	return append(all, strings.Repeat("<b>", 30_000), strings.Repeat(`"`, 50_000), strings.Repeat("x", 300_000), strings.Repeat("\u202e", 20_000), strings.Repeat("<script>\n", 9_000))
}

// known has what the templates make: elements, each with its attributes.
var known = map[string]string{
	"html": "lang", "head": "", "meta": "charset name content", "title": "", "link": "rel href", "script": "src defer", "body": "data-live data-head", "a": "class href aria-current data-key rel",
	"header": "class", "p": "class id role hidden", "bdi": "", "nav": "aria-label", "ul": "class", "li": "class", "button": "type id class hidden name value aria-label", "kbd": "", "form": "method action class role aria-label id",
	"input": "type name value checked required maxlength autocomplete id", "main": "id tabindex", "h1": "", "h2": "class id data-count", "h3": "", "dialog": "id aria-labelledby", "dl": "", "dt": "", "dd": "", "section": "class aria-label aria-labelledby",
	"span": "class", "code": "", "ol": "class", "details": "class open id data-file", "summary": "class", "div": "class tabindex role aria-label", "table": "", "caption": "class", "thead": "class", "tbody": "", "tr": "class", "th": "scope", "td": "class colspan",
	"figure": "", "figcaption": "", "img": "loading src width height alt",
	"pre": "tabindex", "strong": "class", "label": "", "select": "name", "option": "value selected", "fieldset": "", "legend": "", "aside": "aria-labelledby",
}

// checkPage parses a page as browsers do, and reports what its templates did not
// make.
func checkPage(t *testing.T, path, page string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	scripts := 0
	for n := range root.Descendants() {
		switch n.Type {
		case html.ElementNode:
			attributes, is := known[n.Data]
			require.True(t, is, "%s: element <%s>", path, n.Data)
			require.Empty(t, n.Namespace, path)
			for _, a := range n.Attr {
				require.True(t, slices.Contains(strings.Fields(attributes), a.Key), "%s: attribute %s of <%s>", path, a.Key, n.Data)
				checkAttribute(t, path, n.Data, a)
			}
			if n.Data == "script" {
				scripts++
				require.Nil(t, n.FirstChild, "%s: code in a page", path)
			}
		case html.TextNode:
			checkVisible(t, path, n.Data)
		case html.CommentNode:
			require.Fail(t, "a comment", "%s: %s", path, n.Data)
		default:
		}
	}
	require.Equal(t, 1, scripts, path)
}

func checkAttribute(t *testing.T, path, element string, a html.Attribute) {
	t.Helper()
	switch a.Key {
	case "src":
		require.Regexp(t, `^(/assets/console\.js|/image\?[a-z0-9A-Z%&=_]+)$`, a.Val, path)
	case "href", "action", "data-live":
		u, err := url.Parse(a.Val)
		require.NoError(t, err, path)
		require.Empty(t, u.Scheme+u.Host, "%s: %s leads away: %s", path, element, a.Val)
		if a.Val != "" && a.Val != "#main" {
			require.Regexp(t, `^/[a-z]*(/[a-z]+\.(css|svg))?(\?|$)`, a.Val, path)
		}
	case "class":
		require.Regexp(t, `^[a-z ]*$`, a.Val, path)
	case "aria-label", "alt":
		checkVisible(t, path, a.Val)
	}
}

// checkVisible reports characters that change how the rest of a page reads.
func checkVisible(t *testing.T, path, text string) {
	t.Helper()
	i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && r != '\u00a0' && !unicode.IsPrint(r) })
	require.Negative(t, i, "%s: %.40q", path, text[max(i, 0):])
}

// TestHostileTexts: texts that an agent writes as a prompt, a name, an argument,
// content, an output or its own name, the pages stay as their templates make
// them.
func TestHostileTexts(t *testing.T) {
	texts := hostileTexts()
	require.GreaterOrEqual(t, len(texts), 200)
	if os.Getenv("REMIT_PROVE") == "" {
		t.Log("make prove ARGS=console, or REMIT_PROVE=1, shows the pages of all texts")
		texts = slices.Collect(everySixth(texts))
	}
	pages := 0
	for some := range slices.Chunk(texts, 20) {
		reason := some[0]
		echo, err := tool.Create("echo", "Echoes.", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
		require.NoError(t, err)
		fails, err := tool.Create("fails", "Fails.", func(_ context.Context, in string) (string, error) { return "", fmt.Errorf("%s", in) }, tool.Pure())
		require.NoError(t, err)
		p := newPlace(t, console.Options{
			Title: reason, Hint: func(args ...string) string { return reason + strings.Join(args, " ") },
			Explain: func(_ context.Context, call string) (string, error) { return call + reason, nil },
		}, agent.Tools(echo, fails), agent.Policy(asksCommits{asks(reason), reason}))
		for i, text := range some {
			for _, path := range p.hostileWork(i, text) {
				w := p.do(p.get(path))
				require.Less(t, w.Code, 500, "%s: %s", path, w.Body.String())
				checkPage(t, path, w.Body.String())
				pages++
			}
		}
	}
	t.Logf("proved: hostile texts on the pages of the console: %d texts on %d pages, 0 violations", len(texts), pages)
}

// asksCommits also asks about the commit of a transaction that changed a file
// whose name begins with notesheld.
type asksCommits struct {
	perm.Engine
	reason string
}

func (asksCommits) DecidesCommits() bool { return true }

func (a asksCommits) Decide(ctx context.Context, r perm.Request) (perm.Decision, error) {
	if r.Purpose != perm.PurposeCommit {
		return a.Engine.Decide(ctx, r)
	}
	effect := perm.Allow
	if slices.ContainsFunc(r.Txn.Effects, func(e perm.EffectFacts) bool { return strings.HasPrefix(e.Resource.Path, "notesheld") }) {
		effect = perm.Ask
	}
	return perm.NewDecision(effect, perm.Details{Reasons: []perm.Reason{{Text: a.reason, At: "rules.rego:7"}}, Revision: "1"}), nil
}

// hostileCommit lets a commit wait, and returns the pages that show it.
func (p *place) hostileCommit(i int, name, text string) []string {
	tx, err := p.session.Begin(p.t.Context())
	require.NoError(p.t, err)
	out, _ := tx.Invoke(p.t.Context(), "file_write", tool.Args{"path": "notesheld" + name, "content": text})
	if err = tx.Commit(p.t.Context()); !errors.Is(err, tool.ErrPending) {
		require.NotEqual(p.t, tool.StatusDone, out.Status)
		return nil
	}
	at := "/commit?id=" + tx.ID()
	if i%3 == 0 {
		f := p.commitForm(tx.ID(), []string{"approve", "deny"}[i%2])
		f.Set("why", text[:min(len(text), 2000)])
		p.location(p.do(p.post("/commit", f)))
	}
	return []string{at, at + "&from=" + url.QueryEscape(text[:min(len(text), 100)]), "/diff?id=" + tx.ID() + "&request=" + url.QueryEscape(text[:min(len(text), 1000)]), "/commit?id=" + url.QueryEscape(text[:min(len(text), 1000)])}
}

func everySixth(texts []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 0; i < len(texts) && yield(texts[i]); i += 6 {
		}
	}
}

// hostileWork makes calls that write a text wherever they can, and returns the
// pages that show them.
func (p *place) hostileWork(i int, text string) (paths []string) {
	if s, err := p.rt.Session(p.t.Context(), perm.Principal{ID: text}); err == nil {
		p.session = s
	}
	tx, err := p.session.Begin(p.t.Context(), agent.ForPrompt(agent.Prompt{Client: "claude-code", ID: fmt.Sprintf(`p"<'%d`, i), Text: text}))
	require.NoError(p.t, err)
	add := func(o tool.Outcome, _ error) {
		if o.Call != "" {
			paths = append(paths, "/call?id="+o.Call, "/diff?id="+o.Call, "/revert?id="+o.Call)
		}
	}
	name := fmt.Sprintf("notes%d %s", i, strings.NewReplacer("/", "_", "\x00", "_").Replace(text[:min(len(text), 200)]))
	ctx := p.t.Context()
	add(tx.Invoke(ctx, "file_write", tool.Args{"path": name, "content": text}))
	add(tx.Invoke(ctx, "file_write", tool.Args{"path": "notes.txt", "content": "first\n" + text}))
	add(tx.Invoke(ctx, "file_edit", tool.Args{"path": "notes.txt", "old": "first", "new": text}))
	add(tx.Invoke(ctx, "echo", text))
	add(tx.Invoke(ctx, "fails", text))
	add(tx.Invoke(ctx, text, tool.Args{text: text}))
	require.NoError(p.t, tx.Commit(ctx))
	paths = append(paths, p.hostileCommit(i, name, text)...)
	p.own("notes.txt", "another\n"+text)
	out, _ := p.session.Call(ctx, "file_write", tool.Args{"path": "x" + name, "content": text})
	q := url.QueryEscape(text[:min(len(text), 4000)])
	paths = append(paths,
		"/", "/sessions", "/policy", "/grants", "/health", "/why?id="+q, "/timeline?principal="+q, "/timeline", "/timeline?q="+q+"&path="+q+"&tool="+q+"&outcome="+q+"&session="+q+"&from="+q+"&to="+q,
		"/revert?id="+url.QueryEscape(fmt.Sprintf(`p"<'%d`, i)), "/diff?id="+url.QueryEscape(fmt.Sprintf(`p"<'%d`, i)), "/diff?id="+q, "/revert?id="+q, "/redo?id="+tx.ID(),
		"/diff?id="+tx.ID()+"&file=0", "/call?id="+q, "/report?n="+q, "/"+url.PathEscape(text[:min(len(text), 200)]), "/timeline?txn="+tx.ID())
	if out.Call == "" {
		return paths
	}
	page := p.do(p.get("/approve?id=" + out.Call))
	if page.Code == http.StatusOK && strings.Contains(page.Body.String(), `name="request"`) {
		form := url.Values{"form": {p.form()}, "id": {out.Call}, "request": {field(p.t, page.Body.String(), "request")}, "shown": {field(p.t, page.Body.String(), "shown")}, "answer": {"deny"}, "why": {text[:min(len(text), 2000)]}}
		if i%4 == 2 {
			form["answer"], form["scope"], form["for"] = []string{"approve"}, []string{"always"}, []string{"1h"}
		}
		if i%2 == 0 { // the others wait on
			p.location(p.do(p.post("/approve", form)))
		}
	}
	return append(paths, "/approve?id="+out.Call, "/call?id="+out.Call, "/why?id="+out.Call, "/grants")
}
