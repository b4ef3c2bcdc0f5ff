package hooks_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/hooks"
)

// reportsFailure sends the event after a use that failed.
func (c *coder) reportsFailure(tool, id string, in map[string]any) {
	c.t.Helper()
	c.event("PostToolUseFailure", map[string]any{"tool_name": tool, "tool_use_id": id, "tool_input": in, "error": "no"})
}

// A yes to the prompt of the client is remembered once the client has used its
// tool, and is not before.
func TestTheAnswerToTheClientIsRemembered(t *testing.T) {
	const local = "curl -X POST -d 'a=1' http://localhost:3456/notes"
	in := map[string]any{"command": local}
	d := newProject(t, false, "")
	c := d.coder("claude-code", "s")
	c.says("send")
	_, a := c.asks("Bash", in) // declined: no end is reported
	require.Equal(t, hooks.Ask, a.Verdict)
	require.True(t, strings.HasSuffix(a.Reason, "A yes also covers, in this session: POST requests to localhost:3456"), a.Reason)
	require.NotContains(t, a.Reason, "remit approve")
	c.stops()

	c.says("again")
	id, a := c.asks("Bash", in)
	require.Equal(t, hooks.Ask, a.Verdict, "the person declined")
	c.reportsFailure("Bash", id, in)
	id, a = c.asks("Bash", in)
	require.Equal(t, hooks.Ask, a.Verdict, "a failure does not tell that the person agreed")
	require.Empty(t, kept(t, d))
	require.Equal(t, hooks.Answer{}, c.reports("Bash", id, in, map[string]any{"stdout": "201"}))
	require.Equal(t, []string{"POST requests to localhost:3456"}, kept(t, d))

	other := map[string]any{"command": "curl -s --json '{}' localhost:3456/other | head -1"}
	id, a = c.asks("Bash", other)
	require.Equal(t, hooks.Allow, a.Verdict, a.Reason)
	c.reports("Bash", id, other, map[string]any{"stdout": "201"})
	c.stops()
	c.says("a later prompt")
	_, a = c.asks("Bash", other)
	require.Equal(t, hooks.Allow, a.Verdict, a.Reason)
	for _, text := range []string{"curl -X DELETE localhost:3456/notes", "curl -X POST -d 'a=1' localhost:3457/", local + "; sh x", "sh x"} {
		_, a = c.asks("Bash", map[string]any{"command": text})
		require.Equal(t, hooks.Ask, a.Verdict, text)
	}
	_, a = d.coder("claude-code", "another session").asks("Bash", in)
	require.Equal(t, hooks.Ask, a.Verdict)

	all, err := d.rt.Grants(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NoError(t, d.rt.Revoke(t.Context(), all[0].ID, "person", ""))
	_, a = c.asks("Bash", in)
	require.Equal(t, hooks.Ask, a.Verdict, "revoked")
}

// The call of a page has ended when the client asks about it.
func TestTheAnswerAboutAPageIsRemembered(t *testing.T) {
	d := newProject(t, false, "")
	c := d.coder("claude-code", "s")
	c.says("read")
	page := func(url string) map[string]any { return map[string]any{"url": url, "prompt": "what is new"} }
	_, a := c.asks("WebFetch", page("https://example.org/a"))
	require.Equal(t, hooks.Ask, a.Verdict)
	id, a := c.asks("WebFetch", page("https://example.org/b"))
	require.Equal(t, hooks.Ask, a.Verdict, "no end is reported")
	c.reports("WebFetch", id, page("https://example.org/b"), "text")
	_, a = c.asks("WebFetch", page("https://example.org/c"))
	require.Equal(t, hooks.Allow, a.Verdict)
	for _, url := range []string{"https://example.com/c", "https://example.org/" + strings.Repeat("a", 50)} {
		_, a = c.asks("WebFetch", page(url))
		require.Equal(t, hooks.Ask, a.Verdict, url)
	}
}

// In a client without a prompt of its own, the approval of the waiting call is
// remembered. A reason that does not say so prevents it.
func TestAnApprovalIsRemembered(t *testing.T) {
	const says = `package remit

ask contains "a person sees each deletion" if contains(input.call.args.command, "DELETE")
`
	d := newProject(t, false, says)
	c := d.coder("codex", "s")
	c.says("run")
	for text, want := range map[string][2]hooks.Verdict{
		"curl -X PUT localhost:3456/a":    {hooks.Allow, hooks.Allow},
		"curl -X DELETE localhost:3456/a": {hooks.Allow, hooks.Deny},
	} {
		_, a := c.asks("Bash", map[string]any{"command": text})
		require.Equal(t, hooks.Deny, a.Verdict)
		require.NoError(t, d.rt.Answer(t.Context(), approve(firstCallID(t, a.Reason))))
		for i, again := range []string{text, text + "b"} {
			in := map[string]any{"command": again}
			id, a := c.asks("Bash", in)
			require.Equal(t, want[i], a.Verdict, again+a.Reason)
			if a.Verdict == hooks.Allow {
				c.reports("Bash", id, in, map[string]any{"stdout": ""})
			}
		}
	}
	require.Equal(t, []string{"PUT requests to localhost:3456"}, kept(t, d))
}

func firstCallID(t *testing.T, text string) string {
	t.Helper()
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, "c_") {
			return word
		}
	}
	t.Fatal(text)
	return ""
}

// kept returns the keys that are remembered.
func kept(t *testing.T, d *project) (keys []string) {
	t.Helper()
	all, err := d.rt.Grants(t.Context())
	require.NoError(t, err)
	for _, g := range all {
		keys = append(keys, g.Keys...)
	}
	return keys
}
