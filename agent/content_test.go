package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/verify"
)

const keepsLine = `package remit
allow contains "all" if true
ensure contains "a config file keeps its line" if {
	some change in input.changes
	change.resource.ext == ".ini"
	change.after
	not contains(change.text, "Maintained by:")
}
`

// TestEnsureSeesWhatEveryToolWrote: the rule reads what the file holds after the call,
// so it holds for each way to change the file.
func TestEnsureSeesWhatEveryToolWrote(t *testing.T) {
	const good, bad = "Maintained by: us\nx = 1\n", "x = 1\n"
	for name, tt := range map[string]struct {
		tool string
		args tool.Args
		ok   bool
	}{
		"a write that loses it":      {"file_write", tool.Args{"path": "site.ini", "content": bad}, false},
		"a write that keeps it":      {"file_write", tool.Args{"path": "site.ini", "content": good + bad}, true},
		"an edit that loses it":      {"file_edit", tool.Args{"path": "site.ini", "old": "Maintained by: us\n", "new": ""}, false},
		"an edit that keeps it":      {"file_edit", tool.Args{"path": "site.ini", "old": "x = 1", "new": "x = 2"}, true},
		"a copy over nothing":        {"file_copy", tool.Args{"from": "other.txt", "to": "new.ini"}, false},
		"a copy of a good one":       {"file_copy", tool.Args{"from": "site.ini", "to": "new.ini"}, true},
		"a move of a bad one":        {"file_move", tool.Args{"from": "other.txt", "to": "new.ini"}, false},
		"a move in a folder":         {"file_move", tool.Args{"from": "sub", "to": "moved"}, false},
		"a file of another kind":     {"file_write", tool.Args{"path": "b.txt", "content": bad}, true},
		"one that goes":              {"file_delete", tool.Args{"path": "site.ini"}, true},
		"a binary file":              {"file_write", tool.Args{"path": "site.ini", "content": "Maintained by:\x00"}, false},
		"the line behind the cut":    {"file_write", tool.Args{"path": "site.ini", "content": strings.Repeat("x", 256<<10) + good}, false},
		"the line just at the cut":   {"file_write", tool.Args{"path": "site.ini", "content": strings.Repeat("x", 256<<10-14) + good}, true},
		"no change, nothing to read": {"file_read", tool.Args{"path": "other.txt"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(name, text string) {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			put("site.ini", good)
			put("other.txt", bad)
			put("sub/in.ini", bad)
			rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": keepsLine}})))
			out, err := begin(t, newSession(t, rt)).Invoke(t.Context(), tt.tool, tt.args)
			if tt.ok {
				require.NoError(t, err, out.Text)
				return
			}
			require.ErrorIs(t, err, tool.ErrVerifyFailed, out.Text)
			require.Contains(t, out.Error.Why, "a config file keeps its line (p.rego:3)")
			require.Equal(t, "all", out.Reverted)
			text, err := os.ReadFile(filepath.Join(dir, "site.ini"))
			require.NoError(t, err)
			require.Equal(t, good, string(text))
			require.NoFileExists(t, filepath.Join(dir, "new.ini"))
		})
	}
}

// seen is an engine that keeps what it was shown of changes.
type seen struct {
	changes []perm.ChangeFacts
	reads   bool
	masks   []string
}

func (s *seen) ReadsContent() bool { return s.reads }

func (s *seen) Decide(_ context.Context, r perm.Request) (perm.Decision, error) {
	if r.Purpose == perm.PurposeVerify {
		s.changes = r.Changes
	}
	return perm.NewDecision(perm.Allow, perm.Details{Masks: s.masks}), nil
}

// TestContentOfChanges: what an engine is shown is what the file holds, as far as it may
// be shown, and an engine that does not ask is shown nothing.
func TestContentOfChanges(t *testing.T) {
	write := func(t *testing.T, s *seen, path, content string) perm.ChangeFacts {
		rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", t.TempDir()), agent.Policy(s))
		out, err := begin(t, newSession(t, rt)).Invoke(t.Context(), "file_write", tool.Args{"path": path, "content": content})
		require.NoError(t, err, out.Text)
		require.NotEmpty(t, s.changes)
		last := s.changes[len(s.changes)-1]
		last.Resource, last.Kind, last.Before, last.After = perm.ResourceFacts{}, "", "", ""
		return last
	}
	text := func(s string) *string { return &s }
	long := strings.Repeat("ä", 256<<9) + "ä" // the cut falls between two characters
	odd := "x" + long                         // and into one
	masks := []string{"file://*/**/.env/**"}
	for name, tt := range map[string]struct {
		path, content string
		want          perm.ChangeFacts
	}{
		"text":                     {"a.txt", "hi", perm.ChangeFacts{Text: text("hi"), MediaType: "text/plain", Size: 2}},
		"nothing":                  {"a.txt", "", perm.ChangeFacts{Text: text(""), MediaType: "text/plain"}},
		"cut":                      {"a.txt", long, perm.ChangeFacts{Text: text(long[:256<<10]), MediaType: "text/plain", Cut: true}},
		"cut in a letter":          {"a.txt", odd, perm.ChangeFacts{Text: text(odd[:256<<10-1]), MediaType: "text/plain", Cut: true}},
		"binary":                   {"a.bin", "a\x00b", perm.ChangeFacts{Text: text(""), MediaType: "application/octet-stream", Size: 3, Binary: true}},
		"masked":                   {".env", "KEY=1", perm.ChangeFacts{Text: text(""), Masked: true}},
		"masked, in other letters": {".ENV", "KEY=1", perm.ChangeFacts{Text: text(""), Masked: true}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, write(t, &seen{reads: true, masks: masks}, tt.path, tt.content))
			require.Equal(t, perm.ChangeFacts{}, write(t, &seen{masks: masks}, tt.path, tt.content), "it does not ask")
		})
	}
	t.Run("a mask that is none", func(t *testing.T) {
		s := &seen{reads: true, masks: []string{"no pattern"}}
		rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", t.TempDir()), agent.Policy(s))
		out, err := begin(t, newSession(t, rt)).Invoke(t.Context(), "file_write", tool.Args{"path": "a", "content": "x"})
		require.ErrorIs(t, err, tool.ErrVerifyFailed, out.Text)
		require.Contains(t, out.Error.Why, "mask")
	})
}

// TestContentIsOfTheCall: what another process wrote since is not judged as the call's.
func TestContentIsOfTheCall(t *testing.T) {
	dir := t.TempDir()
	var write tool.Tool
	for _, tl := range builtin.Files() {
		if tl.Name() == "file_write" {
			var err error
			write, err = tl.Modify(func(s *tool.Spec) {
				s.Verify = verify.Verifier(func(context.Context, verify.Subject) verify.Verdict {
					if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("theirs"), 0o600); err != nil {
						return verify.CannotTell(err.Error())
					}
					return verify.Applied()
				})
			})
			require.NoError(t, err)
		}
	}
	s := &seen{reads: true}
	rt := newRuntime(t, agent.Tools(write), agent.Root("workspace", dir), agent.Policy(s))
	out, err := begin(t, newSession(t, rt)).Invoke(t.Context(), "file_write", tool.Args{"path": "a.txt", "content": "mine"})
	require.ErrorIs(t, err, tool.ErrVerifyFailed, out.Text)
	require.Contains(t, out.Error.Why, "another process has changed the file since the call")
	require.Nil(t, s.changes)
}

// TestContentIsNotWrittenDown: the journal has no more of a file than without the rule.
func TestContentIsNotWrittenDown(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "site.ini"), []byte("Maintained by: us\ncanary = 1\nx = 1\n"), 0o600))
	rt := newRuntime(t, agent.Tools(builtin.Files()...), agent.Root("workspace", dir), agent.Policy(mustLoad(t, rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": keepsLine}})))
	tx := begin(t, newSession(t, rt))
	_, err := tx.Invoke(t.Context(), "file_edit", tool.Args{"path": "site.ini", "old": "x = 1", "new": "x = 2"})
	require.NoError(t, err)
	_, err = tx.Invoke(t.Context(), "file_edit", tool.Args{"path": "site.ini", "old": "Maintained by: us", "new": ""})
	require.ErrorIs(t, err, tool.ErrVerifyFailed)
	for e, err := range rt.Journal().Entries(t.Context(), journal.Query{}) {
		require.NoError(t, err)
		rec, err := record.Unseal(e)
		require.NoError(t, err)
		if _, output := rec.Body.(*record.Done); !output {
			require.NotContains(t, string(e.Body), "canary", rec.Kind)
		}
	}
}
