package gateway_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/mcp/gateway"
	"github.com/remit-dev/remit/mcp/gateway/config"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/policies"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

const wholeRoot = `{"d": {"tools": {"act": {"effectClass": "reversible", "undo": {"snapshot": ["file://workspace/**"]}}, "look": {"effectClass": "pure"}}}}`

// disk is a house with a server outside the sandbox of which whole folders are kept.
func disk(t testing.TB, known string, how ...func(*gatewaySetup)) *gatewaySetup {
	h := newGatewaySetup(t)
	for _, f := range how {
		f(h)
	}
	return h.open(map[string]string{"d": h.server("disk", nil)}, known)
}

func do(folder string, all ...diskStep) tool.Args {
	args := tool.Args{"deeds": all}
	if folder != "" {
		args["folder"] = folder
	}
	return args
}

// furnish makes a tree of everything that there is, and returns how it looks.
func (h *gatewaySetup) furnish() string {
	h.t.Helper()
	for _, name := range []string{"a/b", "empty", "gone/deep"} {
		require.NoError(h.t, os.MkdirAll(filepath.Join(h.dir, name), 0o755))
	}
	for name, text := range map[string]string{
		"top.txt": "top", "a/one.txt": "one", "a/b/two.txt": "two", "gone/x.txt": "x", "gone/deep/y.txt": "y", "twin.txt": "twins", "run.sh": "#!/bin/sh", "old.txt": "old",
	} {
		h.put(name, text)
	}
	require.NoError(h.t, os.Link(filepath.Join(h.dir, "twin.txt"), filepath.Join(h.dir, "a/twin.txt")))
	require.NoError(h.t, os.Symlink("top.txt", filepath.Join(h.dir, "link")))
	require.NoError(h.t, os.Chmod(filepath.Join(h.dir, "run.sh"), 0o751))
	require.NoError(h.t, os.Chtimes(filepath.Join(h.dir, "old.txt"), time.Unix(1e9, 0), time.Unix(1e9, 0)))
	return h.looks()
}

// looks describes all that is in the workspace: bits, content, times of files, and which names are one file.
func (h *gatewaySetup) looks() string {
	h.t.Helper()
	var all strings.Builder
	first := map[uint64]string{}
	require.NoError(h.t, filepath.WalkDir(h.dir, func(at string, _ fs.DirEntry, err error) error {
		if err != nil || at == h.dir || strings.HasPrefix(filepath.Base(at), ".remit-stage") {
			return err
		}
		is, err := os.Lstat(at)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(&all, "%s %s", strings.TrimPrefix(at, h.dir), is.Mode())
		switch {
		case is.Mode().IsRegular():
			raw, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			sys, ok := is.Sys().(*syscall.Stat_t)
			require.True(h.t, ok)
			if first[sys.Ino] == "" {
				first[sys.Ino] = at
			}
			_, _ = fmt.Fprintf(&all, " %x %s %s", sha256.Sum256(raw), is.ModTime().UTC(), strings.TrimPrefix(first[sys.Ino], h.dir))
		case is.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(at)
			if err != nil {
				return err
			}
			all.WriteString(" " + target)
		}
		all.WriteString("\n")
		return nil
	}))
	return all.String()
}

// everything is what a server can do to files.
func everything() []diskStep {
	return []diskStep{
		{"write", "new.txt", "new"},
		{"mkdir", "made/deep", ""},
		{"write", "made/deep/z.txt", "z"},
		{"write", "top.txt", "changed"},
		{"remove", "gone", ""},
		{"rename", "a/b", "moved"},
		{"rename", "a/one.txt", "uno.txt"},
		{"append", "twin.txt", " and more"},
		{"chmod", "run.sh", "0600"},
		{"chmod", "empty", "0700"},
		{"remove", "link", ""},
		{"link", "link", "a"},
		{"name", "old.txt", "other.txt"},
		{"touch", "old.txt", ""},
		{"write", ".remit-stage-of-remit", "nobody's"},
		{"chmod", ".", "0750"},
	}
}

// TestFolders: whatever a server does below a root whose content is kept is a change of its call: shown, reverted and
// redone, and what did not verify, or failed half-way, is as before.
func TestFolders(t *testing.T) {
	h := disk(t, wholeRoot)
	before := h.furnish()
	s := h.session()
	var out tool.Outcome
	id, err := s.Update(t.Context(), func(tx *agent.Txn) (err error) {
		out, err = tx.Invoke(t.Context(), "d__act", do("", everything()...))
		return err
	})
	require.NoError(t, err, out.Text)
	require.EqualValues(t, "applied", out.Verdict.Presence)
	kinds := map[string]string{}
	for i, c := range out.Changes {
		path := strings.TrimPrefix(c.Resource, "file://workspace/")
		kinds[path] = c.Kind
		for _, later := range out.Changes[i+1:] {
			require.False(t, later.Kind == "delete" && c.Kind != "delete", "what goes comes first")
			other := strings.TrimPrefix(later.Resource, "file://workspace/")
			require.False(t, c.Kind == "delete" && strings.HasPrefix(other, path+"/") || c.Kind != "delete" && strings.HasPrefix(path, other+"/"), "%s before %s", path, other)
		}
	}
	require.Equal(t, map[string]string{
		"new.txt": "create", "made": "mkdir", "made/deep": "mkdir", "made/deep/z.txt": "create", "top.txt": "write",
		"gone": "delete", "gone/deep": "delete", "gone/x.txt": "delete", "gone/deep/y.txt": "delete",
		"a/b": "delete", "a/b/two.txt": "delete", "moved": "mkdir", "moved/two.txt": "create", "a/one.txt": "delete", "uno.txt": "create",
		"twin.txt": "write", "a/twin.txt": "write", "run.sh": "write", "empty": "write", "link": "write", "other.txt": "create",
	}, kinds)
	after := h.looks()
	rep, err := s.Revert(t.Context(), id, revert.Options{})
	require.NoError(t, err, "%v", rep.NotReverted())
	require.Equal(t, before, h.looks())
	rep, err = s.Redo(t.Context(), id)
	require.NoError(t, err, "%v", rep.NotReverted())
	require.Equal(t, after, h.looks())
	_, err = s.Revert(t.Context(), id, revert.Options{})
	require.NoError(t, err)

	out = h.call("d__act", do("", append(everything(), diskStep{Do: "fail"})...))
	require.Equal(t, tool.StatusFailed, out.Status, out.Text)
	require.Equal(t, "all", out.Reverted)
	require.Equal(t, before, h.looks())

	out = h.call("d__act", do(""))
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	require.Empty(t, out.Changes)
}

// TestFoldersAndOthers: what somebody wrote since stays, and is named.
func TestFoldersAndOthers(t *testing.T) {
	h := disk(t, wholeRoot)
	h.furnish()
	s := h.session()
	id, err := s.Update(t.Context(), func(tx *agent.Txn) error {
		_, err := tx.Invoke(t.Context(), "d__act", do("", diskStep{"write", "top.txt", "changed"}, diskStep{"write", "new.txt", "new"}, diskStep{"remove", "gone", ""}))
		return err
	})
	require.NoError(t, err)
	h.put("top.txt", "mine")
	rep, err := s.Revert(t.Context(), id, revert.Options{})
	require.ErrorIs(t, err, agent.ErrPartialRevert)
	require.Len(t, rep.NotReverted(), 1)
	require.Equal(t, "mine", h.get("top.txt"))
	require.Equal(t, "(none)", h.get("new.txt"))
	require.Equal(t, "y", h.get("gone/deep/y.txt"))
}

// TestOneFolder: only what lies in the folder that an argument names is kept, one that is not there yet too; without the
// argument it is all of the root.
func TestOneFolder(t *testing.T) {
	h := disk(t, `{"d": {"tools": {"act": {"effectClass": "reversible", "undo": {"snapshot": ["file://workspace/{folder}/**"]}}}}}`)
	before := h.furnish()
	for folder, deeds := range map[string][]diskStep{
		"a":                          {{"write", "a/b/two.txt", "2"}, {"remove", "a/one.txt", ""}, {"chmod", "a", "0700"}},
		filepath.Join(h.dir, "gone"): {{"remove", "gone", ""}},
		"fresh/one/two":              {{"mkdir", "fresh/one/two", ""}, {"write", "fresh/one/two/f", "f"}},
		".":                          everything(),
		"":                           everything(),
	} {
		tx := h.txn()
		out, err := tx.Invoke(t.Context(), "d__act", do(folder, deeds...))
		require.NoError(t, err, out.Text)
		require.NotEqual(t, before, h.looks())
		_, err = tx.Revert(t.Context(), revert.Options{})
		require.NoError(t, err)
		require.Equal(t, before, h.looks(), folder)
	}
	for folder, why := range map[string]string{"top.txt": "is no folder", "link/x": "is a link", "../x": "leaves its root"} {
		out := h.call("d__act", do(folder, diskStep{"write", "new.txt", "new"}))
		require.Contains(t, out.Text, why)
		require.Equal(t, "(none)", h.get("new.txt"))
	}
	out := h.call("d__act", do("a", diskStep{"write", "a/new.txt", "new"}, diskStep{"write", "new.txt", "new"}))
	require.Equal(t, tool.StatusDone, out.Status, out.Text)
	require.Len(t, out.Changes, 1, "of what lies elsewhere nobody knows")
}

// TestFoldersInFolders: of folders that lie in one another each change is told once.
func TestFoldersInFolders(t *testing.T) {
	h := disk(t, `{"d": {"tools": {"act": {"effectClass": "reversible", "undo": {"snapshot": ["file://workspace/a/**", "file://workspace/a/b/**", "file://workspace/made/**"]}}}}}`)
	before := h.furnish()
	tx := h.txn()
	out, err := tx.Invoke(t.Context(), "d__act", do("", diskStep{"write", "a/b/two.txt", "2"}, diskStep{"mkdir", "made/deep", ""}))
	require.NoError(t, err, out.Text)
	require.Len(t, out.Changes, 3)
	_, err = tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, before, h.looks())
}

// TestFoldersHeld: what another open transaction holds and a server wrote all the same is left to that one; nobody can tell then what
// the call came to, and the rest of it is reverted.
func TestFoldersHeld(t *testing.T) {
	h := disk(t, wholeRoot)
	h.furnish()
	other := h.txn()
	_, err := other.Invoke(t.Context(), "file_write", tool.Args{"path": "top.txt", "content": "held"})
	require.NoError(t, err)
	before := h.looks()
	tx := h.txn()
	out, err := tx.Invoke(t.Context(), "d__act", do("", diskStep{"write", "new.txt", "new"}, diskStep{"write", "top.txt", "taken"}, diskStep{"remove", "gone", ""}))
	require.Error(t, err)
	require.Equal(t, tool.StatusUnknown, out.Status, out.Text)
	require.Contains(t, out.Error.Why, "top.txt is held by transaction")
	require.Len(t, out.Changes, 5)
	_, err = tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err)
	require.Equal(t, "taken", h.get("top.txt"))
	h.put("top.txt", "held")
	require.Equal(t, strings.Count(before, "\n"), strings.Count(h.looks(), "\n"))
	require.NoError(t, other.Commit(t.Context()))
}

// hookedHost is the real world, in which somebody looks at each scheduling point.
type hookedHost struct {
	host.Host

	on func(id string)
}

func (h hookedHost) Point(ctx context.Context, id string) error {
	h.on(id)
	return h.Host.Point(ctx, id)
}

// TestFoldersUntilTheEnd: a call has its roots until what failed of it is reverted, so that nobody takes that for what another one
// did.
func TestFoldersUntilTheEnd(t *testing.T) {
	var looked atomic.Int64
	var early atomic.Bool
	h := newGatewaySetup(t)
	free := func() bool {
		all, err := filepath.Glob(filepath.Join(h.kept.Dir, "*.lock"))
		require.NoError(t, err)
		require.Len(t, all, 1)
		f, err := os.Open(all[0])
		require.NoError(t, err)
		defer func() { _ = f.Close() }()
		return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	}
	h.host = hookedHost{host.Real(), func(id string) {
		if id == "revert.apply" {
			looked.Add(1)
			early.Store(early.Load() || free())
		}
	}}
	h.open(map[string]string{"d": h.server("disk", nil)}, wholeRoot)
	out := h.call("d__act", do("", diskStep{"write", "new.txt", "new"}, diskStep{Do: "fail"}))
	require.Equal(t, tool.StatusFailed, out.Status, out.Text)
	require.EqualValues(t, 1, looked.Load())
	require.False(t, early.Load())
	require.True(t, free())
}

// TestFoldersTooLarge: what is more than is kept is refused before the server hears of the call, with the limit.
func TestFoldersTooLarge(t *testing.T) {
	for why, most := range map[string]process.SnapshotConfig{"more than 5 names": {MaxFiles: 5}, "more than 10 bytes": {MaxBytes: 10}} {
		h := disk(t, wholeRoot, func(h *gatewaySetup) { h.kept = most })
		before := h.furnish()
		out := h.call("d__act", do("", diskStep{"write", "new.txt", "new"}))
		require.Equal(t, tool.StatusFailed, out.Status, out.Text)
		require.Contains(t, out.Text, why)
		require.Equal(t, before, h.looks())
	}
}

// TestFoldersAndState: a state inside of a root that is kept is refused, and so is a folder of copies.
func TestFoldersAndState(t *testing.T) {
	h := newGatewaySetup(t)
	h.config = `{"mcpServers": {"d": ` + h.server("disk", nil) + `}, "remit": {"servers": ` + wholeRoot + `}}`
	c, err := config.Parse("gateway.json", []byte(h.config), os.LookupEnv)
	require.NoError(t, err)
	_, err = gateway.Open(t.Context(), c, gateway.Options{State: filepath.Join(h.dir, "state"), Roots: map[string]string{"workspace": h.dir}})
	require.ErrorContains(t, err, "outside of the root")
	_, err = gateway.Open(t.Context(), c, gateway.Options{State: h.state})
	require.ErrorContains(t, err, `what root "workspace" holds is to be kept, and there is none`)

	h = disk(t, wholeRoot, func(h *gatewaySetup) { h.kept.Dir = filepath.Join(h.dir, "kept") })
	out := h.call("d__act", do("", diskStep{"write", "new.txt", "new"}))
	require.Contains(t, out.Text, "outside of the root")
	require.Equal(t, "(none)", h.get("new.txt"))
	require.NoDirExists(t, h.kept.Dir)
}

// TestFoldersAndPolicy: what the policy masks is neither kept nor touched by an undo; what it denies is reverted with the call;
// and a session that may change less than the folder makes no call.
func TestFoldersAndPolicy(t *testing.T) {
	var refuse string
	policy := perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
		if refuse != "" && strings.HasSuffix(strings.Join(r.Access.Resource.Segments, "/"), refuse) {
			return perm.NewDecision(perm.Deny, perm.Details{}), nil
		}
		return perm.NewDecision(perm.Allow, perm.Details{Masks: []string{"file://*/**/.env/**", "file://*/**/secret/**"}}), nil
	})
	h := disk(t, wholeRoot, func(h *gatewaySetup) { h.policy = policy })
	h.put(".env", "KEY=hidden-1")
	require.NoError(t, os.MkdirAll(filepath.Join(h.dir, "secret"), 0o755))
	h.put("secret/file", "hidden-2")
	before := h.furnish()
	tx := h.txn()
	out, err := tx.Invoke(t.Context(), "d__act", do("", append(everything(), diskStep{"write", ".env", "KEY=changed"}, diskStep{"write", "a/.env", "another"}, diskStep{"remove", "secret/file", ""})...))
	require.NoError(t, err, out.Text)
	for _, c := range out.Changes {
		require.NotContains(t, c.Resource, "env")
		require.NotContains(t, c.Resource, "secret")
	}
	require.NoError(t, filepath.WalkDir(h.kept.Dir, func(at string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		if e.Type().IsRegular() {
			raw, err := os.ReadFile(at)
			require.NoError(t, err)
			require.NotContains(t, string(raw), "hidden")
		}
		return nil
	}))
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.Error(t, err)
	require.Len(t, unknownElsewhere(rep), 1)
	require.Contains(t, unknownElsewhere(rep)[0], "were not stored: workspace/.env (changed), workspace/secret (changed), workspace/a/.env (new)")
	require.Equal(t, "KEY=changed", h.get(".env"))
	require.Equal(t, "another", h.get("a/.env"))
	require.Equal(t, "(none)", h.get("secret/file"))
	require.NoError(t, os.Remove(filepath.Join(h.dir, "a/.env")))
	h.put(".env", "KEY=hidden-1")
	h.put("secret/file", "hidden-2")
	require.Equal(t, strip(before), strip(h.looks()))

	refuse = "moved"
	before = h.looks()
	out = h.call("d__act", do("", everything()...))
	require.Equal(t, tool.StatusDenied, out.Status, out.Text)
	require.Equal(t, "all", out.Reverted)
	require.Equal(t, before, h.looks())
	refuse = ""

	s, err := h.rt.Session(t.Context(), perm.Principal{ID: "less"}, agent.Grant(perm.Access(perm.Call, "mcp://d/act"), perm.Access(perm.Read, "file://workspace/**"), perm.Access(perm.Write, "file://workspace"), perm.Access(perm.Write, "file://workspace/a/**")))
	require.NoError(t, err)
	_, err = s.Update(t.Context(), func(tx *agent.Txn) error {
		out, err = tx.Invoke(t.Context(), "d__act", do("", everything()...))
		return err
	})
	require.Error(t, err)
	require.Contains(t, out.Error.Why, "the session may not write all of it")
	require.Equal(t, before, h.looks())
}

// TestFoldersOfTheWorkspace: the policy that holds when none is given lets calls be made whose folders are kept, and masks what it
// always does.
func TestFoldersOfTheWorkspace(t *testing.T) {
	engine, err := rego.New(rego.Options{Timeout: time.Minute, Sources: []rego.Source{{FS: policies.Workspace()}}})
	require.NoError(t, err)
	h := disk(t, wholeRoot, func(h *gatewaySetup) { h.policy = engine })
	before := h.furnish()
	tx := h.txn()
	out, err := tx.Invoke(t.Context(), "d__act", do("", append(everything(), diskStep{"mkdir", ".git", ""}, diskStep{"write", ".git/config", "x"})...))
	require.NoError(t, err, out.Text)
	require.Len(t, out.Changes, 21)
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.Error(t, err)
	require.Equal(t, []string{"tool://d__act: files that the policy masks were changed during the call, and were not stored: workspace/.git (new)"}, unknownElsewhere(rep))
	require.Equal(t, "x", h.get(".git/config"))
	require.NoError(t, os.RemoveAll(filepath.Join(h.dir, ".git")))
	require.Equal(t, before, h.looks())
}

// strip leaves out the lines of what the policy masks.
func strip(looks string) string {
	var out []string
	for line := range strings.Lines(looks) {
		if !strings.Contains(line, "secret") && !strings.Contains(line, ".env") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// TestFoldersOfOne: calls that could be taken for one another come one after the other, also of other tools of the server, and
// until what failed is reverted; what only reads does not wait.
func TestFoldersOfOne(t *testing.T) {
	h := disk(t, wholeRoot)
	h.furnish()
	slow := make(chan tool.Outcome, 1)
	go func() {
		slow <- h.call("d__act", do("", diskStep{"write", "at", "1"}, diskStep{"await", "go", ""}, diskStep{"remove", "at", ""}))
	}()
	h.awaits("at")
	require.Equal(t, tool.StatusDone, h.call("d__look", do("")).Status)
	others := make(chan tool.Outcome, 2)
	go func() { others <- h.call("d__act", do("", diskStep{"rename", "at", "mine"})) }()
	go func() { others <- h.call("d__other", do("", diskStep{"rename", "at", "mine"})) }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	tx, err := h.session().Begin(t.Context())
	require.NoError(t, err)
	out, err := tx.Invoke(ctx, "d__act", do("", diskStep{"write", "never", ""}))
	require.Error(t, err)
	require.NotEqual(t, tool.StatusUnknown, out.Status, out.Text)
	h.put("go", "")
	require.Equal(t, tool.StatusDone, receive(t, slow).Status)
	for range 2 {
		require.NotEqual(t, tool.StatusDone, receive(t, others).Status, "there was nothing any more when it came")
	}
	require.Equal(t, "(none)", h.get("mine"))
	require.Equal(t, "(none)", h.get("never"))
}

func (h *gatewaySetup) awaits(name string) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.get(name) != "(none)" }, time.Minute, time.Millisecond)
}

// TestFoldersUnanswered: of a call that its server leaves without an answer, nobody can tell what still comes: it is unknown, with
// what was found, and is reverted when somebody says so.
func TestFoldersUnanswered(t *testing.T) {
	h := disk(t, wholeRoot)
	before := h.furnish()
	tx := h.txn()
	out, err := tx.Invoke(t.Context(), "d__act", do("", append(everything(), diskStep{Do: "exit"})...))
	require.Error(t, err)
	require.Equal(t, tool.StatusUnknown, out.Status, out.Text)
	require.Len(t, out.Changes, 21, "and the time of one more")
	require.NotEqual(t, before, h.looks())
	claims, err := filepath.Glob(filepath.Join(h.kept.Dir, "*", "claim"))
	require.NoError(t, err)
	require.Empty(t, claims, "nobody needs the copy any more")
	rep, err := tx.Revert(t.Context(), revert.Options{})
	require.NoError(t, err, "%v", rep.NotReverted())
	require.Equal(t, before, h.looks())
}
