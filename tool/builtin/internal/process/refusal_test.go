package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/process"
)

// deciding is a policy in Go, for one test.
func deciding(decide func(r perm.Request) perm.Decision) agent.Option {
	return agent.Policy(perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) { return decide(r), nil }))
}

func allowed(d perm.Details) perm.Decision {
	d.Reasons = []perm.Reason{{Text: "it is a test"}}
	return perm.NewDecision(perm.Allow, d)
}

func refusedFor(why string) perm.Decision {
	return perm.NewDecision(perm.Deny, perm.Details{Reasons: []perm.Reason{{Text: why, At: "a.rego:1"}}})
}

// text is the input of a tool that takes a text.
func text(in json.RawMessage) (s string) {
	_ = json.Unmarshal(in, &s)
	return s
}

// invoke runs one script in a transaction that stays open.
func (w programSetup) invoke(t *testing.T, script string) (*agent.Txn, tool.Outcome, error) {
	t.Helper()
	tx, err := w.s.Begin(t.Context())
	require.NoError(t, err)
	o, err := tx.Invoke(t.Context(), "shell_run", tool.Args{"script": script})
	return tx, o, err
}

// TestOnePathDeniesAll: nothing of what a program did is applied where one path of it
// is refused, and each path is asked for by itself with what it was and is to be.
func TestOnePathDeniesAll(t *testing.T) {
	var asked []string
	seen := map[string]string{} // by path: whether there was something, and is to be
	w := newProgramSetup(t, deciding(func(r perm.Request) perm.Decision {
		if r.Purpose == perm.PurposeApply {
			asked = append(asked, string(r.Access.Action)+" "+r.Access.Resource.Path)
			for _, c := range r.Changes {
				seen[c.Resource.Path] = fmt.Sprint(c.Before != "", c.After != "")
			}
			if len(r.Changes) != 3 || r.Call.Args == nil {
				return refusedFor("it does not see all changes")
			}
			if r.Access.Resource.Path == "b" {
				return refusedFor("b is not yours")
			}
		}
		return allowed(perm.Details{})
	}))
	fill(t, w.dir)
	before := listing(t, w.dir, true)
	_, o, err := w.invoke(t, "echo x > a; rm b; mkdir c")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, o.Error.Why, "b is not yours")
	require.Empty(t, o.Changes)
	equal(t, before, listing(t, w.dir, true), "nothing happened")
	slices.Sort(asked)
	require.Contains(t, asked, "delete b")
	require.Equal(t, map[string]string{"a": "true true", "b": "true false", "c": "false true"}, seen)

	asked = nil
	_, o, err = w.invoke(t, "rm a; mkdir c; ln -s a l2")
	require.NoError(t, err)
	slices.Sort(asked)
	require.Equal(t, []string{"delete a", "write c", "write l2"}, asked)
	require.Len(t, o.Changes, 3)
}

// TestNeedsBoundPrograms checks that a program cannot change a folder if its
// tool does not declare the access, even if the policy allows it.
func TestNeedsBoundPrograms(t *testing.T) {
	reads := []perm.ResourceAccess{perm.Access(perm.Execute, "exec://sh"), perm.Access(perm.Read, "file://workspace/src/**")}
	writes := append(slices.Clone(reads), perm.Access(perm.Write, "file://workspace/src/deep/**"))
	for name, needs := range map[string][]perm.ResourceAccess{"reader": reads, "writer": writes} {
		t.Run(name, func(t *testing.T) {
			own, err := process.Program(tool.Spec{Name: "own", Description: "Runs a script.", Needs: needs}, func(in json.RawMessage) (handle.Cmd, error) {
				return handle.Cmd{Argv: []string{"sh", "-c", text(in)}}, nil
			})
			require.NoError(t, err)
			w := newProgramSetup(t, allowAll(), agent.Tools(own))
			fill(t, w.dir)
			tx, err := w.s.Begin(t.Context())
			require.NoError(t, err)
			o, err := tx.Invoke(t.Context(), "own", "find . | sort; cat a src/main.go")
			require.NoError(t, err)
			require.Contains(t, o.Text, "package main")
			for _, hidden := range []string{"./a", "./docs", "./.hidden", "./link"} {
				require.NotContains(t, o.Text, "\n"+hidden+"\n")
			}
			require.Contains(t, o.Text, "./src/deep/er/z")
			before := listing(t, w.dir, true)
			o, err = tx.Invoke(t.Context(), "own", "echo x > src/main.go")
			if name == "reader" {
				require.NoError(t, err)
				require.Contains(t, o.Text, "Read-only file system")
			} else {
				require.ErrorIs(t, err, tool.ErrDenied)
				require.Contains(t, o.Error.Why, "does not declare that it needs to write file://workspace/src/main.go")
				_, err = tx.Invoke(t.Context(), "own", "echo x > src/deep/x; echo y > src/deep/er/y")
				require.NoError(t, err)
				_, err = tx.Revert(t.Context(), revert.Options{})
				require.NoError(t, err)
			}
			equal(t, before, listing(t, w.dir, true), "nothing happened, or it is reverted")
		})
	}
}

// TestMasksHideSecretsOnly: programs and the tools of files read certificates, public
// keys, templates, and keys that are fixtures of tests. What is hidden does not come to
// sight by way of a folder of fixtures.
func TestMasksHideSecretsOnly(t *testing.T) {
	w := newProgramSetup(t)
	open := []string{"tls/Cacert.pem", "id_rsa.pub", ".env.example", "a/testdata/server.key", "test/id_rsa"}
	hidden := []string{"tls/server.pem", "tls/server.key", "test/.env", "deploy/test/server.key"}
	for _, name := range append(slices.Clone(open), hidden...) {
		require.NoError(t, os.MkdirAll(filepath.Join(w.dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, name), []byte(name), 0o644))
	}
	before := listing(t, w.dir, true)
	slices.Sort(open)
	_, o := w.shell(t, "find . -type f | cut -c3- | LC_ALL=C sort; cat "+strings.Join(open, " ")+" >/dev/null")
	require.Equal(t, strings.Join(open, "\n")+"\n", o.Text)
	for _, script := range []string{"mv tls test/tls", "mv deploy test/deploy", "mv deploy/test a/testdata/x"} {
		_, o, err := w.invoke(t, script)
		require.ErrorIs(t, err, tool.ErrDenied, script)
		require.Contains(t, o.Error.Why, "files that usually hold secrets are out of reach")
		equal(t, before, listing(t, w.dir, true), script)
	}
}

// TestMasks: what the policy masks is not there for a program, however it is spelt, and
// is not lost when the program removes the folder around it.
func TestMasks(t *testing.T) {
	w := newProgramSetup(t)
	fill(t, w.dir)
	for _, name := range []string{".env", "src/.ENV", "src/deep/server.Key", "docs/id_rsa"} {
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, name), []byte("secret"), 0o600))
	}
	before := listing(t, w.dir, true)
	for range 2 { // the second time from memory
		_, o := w.shell(t, "grep -r secret . && exit 7; find . -name '.env' -o -iname '*.key' -o -name 'id_*'; ls -A src")
		require.Equal(t, "deep\nmain.go\n\n[sandbox: \"workspace/.env\" is hidden from programs by the policy]", o.Text, "what the script names is told, and nothing else")
	}
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "src", "new.pem"), []byte("secret"), 0o600))
	_, o := w.shell(t, "grep -r secret . ; true")
	require.NotContains(t, o.Text, "new.pem", "what came after the first look is hidden too")
	require.NoError(t, os.Remove(filepath.Join(w.dir, "src", "new.pem")))
	_, o, err := w.invoke(t, "rm -rf docs; echo x > a")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, o.Error.Why, "files that usually hold secrets are out of reach")
	equal(t, before, listing(t, w.dir, true), "nothing happened")
}

// TestForeignChangeWhileItRan changes files while a program runs. If the
// program changes one of them too, the runtime applies no change of the
// program. Other changes have no influence.
func TestForeignChangeWhileItRan(t *testing.T) {
	for _, tt := range []struct {
		name, script, theirs string
		conflict             bool
	}{
		{"the same file", "echo mine > a", "echo theirs > a", true},
		{"a file that it removes", "rm a", "echo theirs > a", true},
		{"one in a folder that it removes", "rm -r src", "echo theirs > src/deep/x", true},
		{"a new one in a folder that it removes", "rm -r src", "echo theirs > src/deep/new", true},
		{"bits of the same file", "echo mine > a", "chmod 600 a", true},
		{"the file is removed after", "echo mine >> a", "rm a", true},
		{"a name that both make", "echo mine > new", "echo theirs > new", true},
		{"a folder in its place after", "echo mine > new", "mkdir new", true},
		{"another file of the folder", "echo mine > src/main.go", "echo theirs > src/deep/x", false},
		{"another new file", "echo mine > n1", "echo theirs > n2", false},
	} {
		for when, script := range map[string]string{"before": "echo ready; read go; " + tt.script, "after": tt.script + "; echo ready; read go"} {
			if when == "before" && strings.HasSuffix(tt.name, "after") {
				continue // then the program comes after them, and sees what they did
			}
			for _, way := range writeModeCases(t) {
				t.Run(tt.name+", "+when+way.name, func(t *testing.T) {
					var w programSetup
					ready := make(chan struct{})
					var once sync.Once
					interrupted, err := process.Program(tool.Spec{Name: "interrupted", Description: "Runs a script."}, func(in json.RawMessage) (handle.Cmd, error) {
						return handle.Cmd{Argv: []string{"sh", "-c", text(in)}, Stdin: &gate{open: ready}, Output: func(handle.Stream, []byte) {
							once.Do(func() {
								plainly(t, w.dir, tt.theirs)
								close(ready)
							})
						}}, nil
					})
					require.NoError(t, err)
					w = newProgramSetup(t, allowAll(), agent.Tools(interrupted), agent.Driver(way.driver))
					fill(t, w.dir)
					expected := w.dir + "-expected"
					require.NoError(t, exec.Command("cp", "-a", w.dir, expected).Run())
					plainly(t, expected, tt.theirs)
					if !tt.conflict {
						plainly(t, expected, tt.script)
					}
					tx, err := w.s.Begin(t.Context())
					require.NoError(t, err)
					o, err := tx.Invoke(t.Context(), "interrupted", script)
					if tt.conflict {
						require.ErrorIs(t, err, tool.ErrFailed)
						require.Contains(t, o.Error.Why, "changed concurrently")
					} else {
						require.NoError(t, err)
					}
					equal(t, listing(t, expected, false), listing(t, w.dir, false), "theirs is there, ours only where they did not touch it")
				})
			}
		}
	}
}

// gate is a standard input that has one line, once it is open.
type gate struct {
	open chan struct{}
	done bool
}

func (g *gate) Read(p []byte) (int, error) {
	if g.done {
		return 0, io.EOF
	}
	<-g.open
	g.done = true
	return copy(p, "go\n"), nil
}

// TestForeignChangeBeforeUndo checks that undo keeps what another writer wrote
// after the program, and reverts everything else.
func TestForeignChangeBeforeUndo(t *testing.T) {
	w := newProgramSetup(t, allowAll())
	fill(t, w.dir)
	before := listing(t, w.dir, true)
	txn, _ := w.shell(t, "sed -i s/a/b/ a; rm -r src/deep; mkdir n; echo x > n/f")
	plainly(t, w.dir, "echo theirs > a; echo more > n/g")
	rep, err := w.s.Revert(t.Context(), txn, revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	left := map[string]effect.Outcome{}
	for _, i := range rep.NotReverted() {
		left[i.Resource] = i.Outcome
	}
	require.Equal(t, map[string]effect.Outcome{"file://workspace/a": effect.Conflict, "file://workspace/n": effect.Conflict}, left)
	data, err := os.ReadFile(filepath.Join(w.dir, "a"))
	require.NoError(t, err)
	require.Equal(t, "theirs\n", string(data))
	plainly(t, w.dir, "rm n/g; rmdir n; printf 'aaa\n' > a; touch -d '2020-02-02 02:02:02.123456789' a")
	equal(t, before, listing(t, w.dir, true), "all else is back")
}

// TestLevelIsDemanded: below the level that is demanded nothing runs, and no other way is
// taken.
func TestLevelIsDemanded(t *testing.T) {
	_, err := handle.New(handle.Config{Require: "thick"})
	require.ErrorContains(t, err, "there are none, partial and strict")
	_, err = handle.New(handle.Config{Require: handle.None})
	require.ErrorContains(t, err, "leave the tools out")
	d, err := handle.New(handle.Config{Shim: "/bin/true", Scratch: filepath.Join(t.TempDir(), "s")})
	require.NoError(t, err)
	w := newFastSetup(t, allowAll(), agent.Driver(d))
	fill(t, w.dir)
	before := listing(t, w.dir, true)
	_, o, err := w.invoke(t, "echo x > a")
	require.Error(t, err)
	require.NotEqual(t, tool.StatusDone, o.Status)
	equal(t, before, listing(t, w.dir, true), "nothing ran")
	left, err := os.ReadDir(filepath.Join(filepath.Dir(w.dir), "s"))
	require.True(t, err != nil || len(left) <= 1, "nothing is left beside it: %v", left)
}

// TestPreview checks that an approver sees the whole difference before any of
// it is applied. The runtime then follows the answer.
func TestPreview(t *testing.T) {
	var seen ctxperm.ApprovalRequest
	approve := true
	w := newProgramSetup(t, deciding(func(perm.Request) perm.Decision {
		return perm.NewDecision(perm.Allow, perm.Details{
			Reasons:  []perm.Reason{{Text: "all", At: "a.rego:2", Set: "allow"}},
			Requires: []perm.Reason{{Text: "preview", At: "a.rego:1", Set: "require"}},
		})
	}), agent.Approver(ctxperm.ApproverFunc(func(_ context.Context, a ctxperm.ApprovalRequest) (ctxperm.Answer, error) {
		if a.Preview != "" {
			seen = a
		}
		if !approve {
			return ctxperm.Deny("boss", "not like this"), nil
		}
		return ctxperm.Approve("boss"), nil
	})))
	fill(t, w.dir)
	before := listing(t, w.dir, true)
	approve = false
	_, o, err := w.invoke(t, "sed -i s/aaa/bbb/ a; rm b; chmod 700 src")
	require.ErrorIs(t, err, tool.ErrDenied)
	require.Contains(t, o.Error.Why, "not like this")
	require.Equal(t, "Denied: the approver refused it. Repeating the call cannot help.", o.Text, "what let it run is no reason for a denial")
	require.Equal(t, "let another person approve it", o.Error.Fix)
	equal(t, before, listing(t, w.dir, true), "nothing happened")
	for _, line := range []string{"-aaa", "+bbb", "workspace/b", "deleted file", "workspace/src"} {
		require.Contains(t, seen.Preview, line)
	}
	approve = true
	tx, o, err := w.invoke(t, "sed -i s/aaa/bbb/ a; rm b; chmod 700 src")
	require.NoError(t, err)
	require.Len(t, o.Changes, 3)
	_, err = tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	equal(t, before, listing(t, w.dir, true), "reverted")
}
