package secrets_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/secrets"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/internal/proof/statcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/sqlite"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// canaries returns 50 values in the forms that secrets have.
func canaries() map[string]string {
	all := map[string]string{}
	shapes := []func(random string) string{
		func(r string) string { return r },
		func(r string) string { return "ghp_" + r + "/+==" },
		func(r string) string { return `q"uo\te<` + r + `>&'` },
		func(r string) string { return "pässwörd 𝄞 " + r },
		func(r string) string {
			return "-----BEGIN KEY-----\n" + r + "\n" + strings.ToUpper(r) + "\n-----END KEY-----"
		},
		func(r string) string { return "tab\tspace nl\\n%41?a=b&" + r },
		func(r string) string { return `{"token":"` + r + `"}` },
		func(r string) string { return "user:" + r + "@host" },
		func(string) string { // digits only
			var b [8]byte
			host.Real().Random(b[:])
			return fmt.Sprintf("9%d", uint64(b[0])<<40|uint64(b[1])<<32|uint64(b[2])<<24|uint64(b[3])<<16|1)
		},
		func(r string) string { return r[:8] },
	}
	for i := range 50 {
		var b [12]byte
		host.Real().Random(b[:])
		all["canary"+strconv.Itoa(i)] = shapes[i%len(shapes)](hex.EncodeToString(b[:]))
	}
	return all
}

// shown returns the encodings in which the test searches for a value. The code
// under test produces none of them.
func shown(value string) map[string]string {
	raw := []byte(value)
	js, _ := json.Marshal(value)
	out := map[string]string{
		"raw": value, "hex": hex.EncodeToString(raw), "HEX": strings.ToUpper(hex.EncodeToString(raw)),
		"base64": base64.RawStdEncoding.EncodeToString(raw), "base64url": base64.RawURLEncoding.EncodeToString(raw),
		"query": url.QueryEscape(value), "path": url.PathEscape(value), "json": string(js[1 : len(js)-1]),
		"go": strconv.Quote(value)[1 : len(strconv.Quote(value))-1], "html": html.EscapeString(value),
	}
	for l := range strings.SplitSeq(value, "\n") {
		if !strings.HasPrefix(l, "-----") {
			out["line "+l] = l
		}
	}
	return out
}

// find returns the places of a value in the written data.
func find(written map[string][]byte, value string) (at []string) {
	ways := shown(value)
	if len(value) > 12 { // inside a longer text: the whole groups, without the ends that a neighbour shares
		for i := range 3 {
			text := base64.StdEncoding.EncodeToString(append(bytes.Repeat([]byte("x"), i), value...))
			ways["base64 at "+strconv.Itoa(i)] = text[4 : len(text)-4]
		}
	}
	for how, text := range ways {
		for where, data := range written {
			if bytes.Contains(data, []byte(text)) {
				at = append(at, how+" in "+where)
			}
		}
	}
	return at
}

// everywhere puts a value into every part of a result that can hold text.
func everywhere(value string) tool.Result {
	var texts []string
	for _, text := range shown(value) {
		texts = append(texts, text)
	}
	texts = append(texts, fmt.Sprintf("%d", []byte(value)), fmt.Sprintf("%v %+v %#v %q", value, value, value, value),
		"URL "+base64.URLEncoding.EncodeToString([]byte(value+" and more")))
	for _, user := range []string{"u", "me", "all"} { // each position in a group of three
		texts = append(texts, "Basic "+base64.StdEncoding.EncodeToString([]byte(user+value+"\xff\xfe")))
	}
	doc, err := json.Marshal(map[string]any{"texts": texts, value: map[string]string{"inner" + value: "x"}, "raw": []byte(value)})
	if err != nil {
		panic(err)
	}
	if n, err := strconv.ParseUint(value, 10, 64); err == nil {
		doc = fmt.Appendf(nil, `{"number":%d,"list":[%d]}`, n, n)
	}
	return tool.Result{
		Text: strings.Join(texts, "\n"), JSON: doc, Meta: map[string]string{"m": value},
		Parts: []tool.Part{{MediaType: "text/plain", Data: []byte("a " + value)}, {MediaType: "application/octet-stream", Data: []byte{1, 2, 3}}},
	}
}

// leaky returns tools that open a secret as the handles of this module do, and
// reveal it in every possible way.
func leaky(t *testing.T) []tool.Tool {
	open := func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (string, error) {
		var args struct{ Name string }
		if err := json.Unmarshal(in, &args); err != nil {
			return "", err
		}
		if strings.HasPrefix(args.Name, "told:") { // the control: no tool opened it
			return strings.TrimPrefix(args.Name, "told:"), nil
		}
		s, err := secrets.Open(ctx, tc, args.Name)
		if err != nil {
			return "", err
		}
		return internals.Reveal(s)
	}
	values := map[string]string{} // by call, as in a closure of careless code
	spec := func(name string, class effect.Class, then func(context.Context, ctxperm.ToolContext, string) (tool.Result, error)) tool.Spec {
		return tool.Spec{
			Name: name, Description: "Leaks.", EffectClass: class,
			Input: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"also":{}},"required":["name"],"additionalProperties":false}`),
			Needs: []perm.ResourceAccess{perm.Access(perm.Use, "secret://*")},
			Execute: func(ctx context.Context, tc ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
				value, err := open(ctx, tc, in)
				if err != nil {
					return tool.Result{}, err
				}
				values[name] = value
				tc.Progress(1, 2, "at "+value)
				return then(ctx, tc, value)
			},
		}
	}
	errOf := func(_ context.Context, _ ctxperm.ToolContext, v string) (tool.Result, error) {
		return tool.Result{}, fmt.Errorf("cannot log in with %s or %q", v, v)
	}
	fine := func(context.Context, ctxperm.ToolContext, string) (tool.Result, error) { return tool.Text("ok"), nil }
	specs := []tool.Spec{
		spec("tells", effect.Pure, func(_ context.Context, _ ctxperm.ToolContext, v string) (tool.Result, error) {
			return everywhere(v), nil
		}),
		spec("fails", effect.Pure, errOf), spec("loses", effect.Pivot, errOf),
		spec("blocks", effect.Pure, func(_ context.Context, _ ctxperm.ToolContext, v string) (tool.Result, error) {
			return tool.Result{}, tool.Blocked("not with " + v)
		}),
		spec("panics", effect.Pure, func(_ context.Context, _ ctxperm.ToolContext, v string) (tool.Result, error) { panic(v) }),
		spec("notes", effect.Pivot, func(ctx context.Context, tc ctxperm.ToolContext, v string) (tool.Result, error) {
			for _, err := range []error{tc.Note(ctx, "v", v), tc.Note(ctx, v, 1), tc.Note(ctx, "b", []byte(v))} {
				if strings.HasPrefix(v, "control-") {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, "value of a secret")
				}
			}
			return tool.Text("ok"), nil
		}),
	}
	checked := spec("checked", effect.Pivot, fine)
	checked.Verify = func(context.Context, verify.Subject) verify.Verdict { return verify.Absent("saw " + values["checked"]) }
	undoes := spec("undoes", effect.Compensable, fine)
	undoes.UndoVersion = "1"
	undoes.Verify = func(_ context.Context, s verify.Subject) verify.Verdict {
		return verify.Applied("is " + values["undoes"])
	}
	undoes.Revert = func(context.Context, tool.RevertContext) error { return errors.New("no way with " + values["undoes"]) }
	stays := undoes
	stays.Name = "stays"
	stays.Revert = func(context.Context, tool.RevertContext) error { return nil } // its Verify still finds the effect
	var out []tool.Tool
	for _, s := range append(specs, checked, undoes, stays) {
		made, err := tool.FromSpec(s)
		require.NoError(t, err)
		out = append(out, made)
	}
	return out
}

// TestCanaries plants 50 values, lets tools reveal them in every way, and
// searches every byte that was written: the journal's files, the log, outcomes,
// errors, reports. The search finds a value that no tool opened in each place,
// which proves that it works.
func TestCanaries(t *testing.T) {
	all := canaries()
	sources := map[string]secrets.Source{}
	for name, value := range all {
		sources[name] = func(context.Context) (string, error) { return value, nil }
	}
	store, err := secrets.New(sources)
	require.NoError(t, err)
	written := map[string][]byte{}
	state := t.TempDir()
	journal, err := sqlite.Open(t.Context(), state)
	require.NoError(t, err)
	var log, told bytes.Buffer
	rt, err := agent.New(agent.Tools(leaky(t)...), agent.Driver(store), agent.Journal(journal),
		agent.Log(slog.New(slog.NewTextHandler(&log, nil))), agent.Policy(everything()),
		agent.OnProgress(func(p tool.Progress) { fmt.Fprintf(&told, "%+v\n", p) }))
	require.NoError(t, err)
	s, err := rt.Session(t.Context(), perm.Principal{ID: "agent"})
	require.NoError(t, err)
	call := func(name string, args tool.Args) {
		tx, err := s.Begin(t.Context())
		require.NoError(t, err)
		out, err := tx.Invoke(t.Context(), name, args)
		text, jerr := json.Marshal(out)
		require.NoError(t, jerr)
		written["outcome of "+name] = append(written["outcome of "+name], fmt.Sprintf("%s\n%+v\n%v\n", text, out, err)...)
		parts, jerr := json.Marshal(out.Result)
		require.NoError(t, jerr)
		written["outcome of "+name] = append(written["outcome of "+name], parts...)
		for _, p := range out.Result.Parts {
			written["outcome of "+name] = append(written["outcome of "+name], p.Data...)
		}
		rep, err := tx.Revert(t.Context(), revert.Options{})
		written["reports of "+name] = fmt.Appendf(written["reports of "+name], "%+v %v\n", rep, err)
	}
	tools := rt.Tools().Names()
	for i := range len(all) { // each value by some of the tools; in the long mode by all of them
		name := "canary" + strconv.Itoa(i)
		for j, l := range tools {
			if l == "tells" || j == i%len(tools) || statcheck.Whole() {
				call(l, tool.Args{"name": name})
			}
		}
		if i%5 == 0 { // the user told the model
			call("tells", tool.Args{"name": name, "also": map[string]any{"deep": []string{all[name]}, all[name]: 1}})
			call("fails", tool.Args{"nam" + all[name]: name})
		}
	}
	const control = "control-d41d8cd98f00b204"
	for _, l := range rt.Tools().Names() {
		call(l, tool.Args{"name": "told:" + control})
	}
	require.NoError(t, rt.Close())
	require.NoError(t, journal.Close())
	written["log"], written["progress"] = log.Bytes(), told.Bytes()
	require.NoError(t, filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		written["state "+d.Name()] = data
		return err
	}))
	for name, value := range all {
		require.Empty(t, find(written, value), "%s, %q", name, value)
	}
	found := strings.Join(find(written, control), "\n")
	for _, place := range []string{
		"outcome of tells", "outcome of fails", "outcome of loses", "outcome of blocks", "outcome of checked", "reports of undoes", "reports of stays", "progress", "state journal",
	} {
		require.Contains(t, found, "raw in "+place)
	}
	for how := range shown(control) {
		require.Contains(t, found, how+" in state journal")
	}
	for i := range 3 {
		require.Contains(t, found, fmt.Sprintf("base64 at %d in state journal", i))
	}
}

func everything() perm.Engine {
	return perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
	})
}
