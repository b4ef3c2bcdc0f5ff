package files_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/internal/files"
	"github.com/remit-dev/remit/verify"
)

func session(t *testing.T) (dir string, tx *agent.Txn) {
	dir = t.TempDir()
	for name, content := range map[string]string{"a.txt": "one two one", "bin": "\xff\x00", "sub/c.txt": "see", ".env": "secret", "keys/x": "x", "keys/id_rsa": "see"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o640))
	}
	rt, err := agent.New(agent.Tools(files.Tools()...), agent.Root("workspace", dir), agent.Log(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Close()) })
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	tx, err = s.Begin(context.Background())
	require.NoError(t, err)
	return dir, tx
}

func TestTools(t *testing.T) {
	for _, tc := range []struct {
		name, tool string
		args       tool.Args
		want       tool.Status
		output     string // JSON, "" for not looked at
		why        string
	}{
		{"read", "file_read", tool.Args{"path": "a.txt"}, tool.StatusDone, `"one two one"`, ""},
		{"read a part", "file_read", tool.Args{"path": "a.txt", "offset": 4, "limit": 3}, tool.StatusDone, `"two"`, ""},
		{"read past the end", "file_read", tool.Args{"path": "a.txt", "offset": 400}, tool.StatusDone, `""`, ""},
		{"read bytes", "file_read", tool.Args{"path": "bin"}, tool.StatusDone, `"2 bytes that are no text"`, ""},
		{"read nothing", "file_read", tool.Args{"path": "none"}, tool.StatusFailed, "", "no such file"},
		{"read a directory", "file_read", tool.Args{"path": "sub"}, tool.StatusFailed, "", ""},
		{"read a secret", "file_read", tool.Args{"path": ".env"}, tool.StatusDenied, "", "secrets"},
		{"negative offset", "file_read", tool.Args{"path": "a.txt", "offset": -1}, tool.StatusInvalid, "", "offset"},
		{"list", "file_list", tool.Args{}, tool.StatusDone, `{"entries":[{"name":".env","size":6,"type":"file"},{"name":"a.txt","size":11,"type":"file"},{"name":"bin","size":2,"type":"file"},{"name":"keys","size":0,"type":"dir"},{"name":"sub","size":0,"type":"dir"}],"has_more":false}`, ""},
		{"list a directory", "file_list", tool.Args{"path": "sub"}, tool.StatusDone, `{"entries":[{"name":"c.txt","size":3,"type":"file"}],"has_more":false}`, ""},
		{"list outside", "file_list", tool.Args{"path": ".."}, tool.StatusInvalid, "", ""},
		{"write", "file_write", tool.Args{"path": "a.txt", "content": "new"}, tool.StatusDone, `"wrote 3 bytes"`, ""},
		{"write what is there", "file_write", tool.Args{"path": "a.txt", "content": "one two one"}, tool.StatusDone, "", ""},
		{"write without a directory", "file_write", tool.Args{"path": "none/a", "content": ""}, tool.StatusFailed, "", "no such file"},
		{"write if absent", "file_write", tool.Args{"path": "a.txt", "content": "x", "if_absent": true}, tool.StatusFailed, "", "exists"},
		{"bad mode", "file_write", tool.Args{"path": "x", "content": "", "mode": "999"}, tool.StatusInvalid, "", "mode"},
		{"edit", "file_edit", tool.Args{"path": "a.txt", "old": "two", "new": "2"}, tool.StatusDone, "", ""},
		{"edit all", "file_edit", tool.Args{"path": "a.txt", "old": "one", "new": "1", "all": true}, tool.StatusDone, "", ""},
		{"edit what occurs twice", "file_edit", tool.Args{"path": "a.txt", "old": "one", "new": "1"}, tool.StatusFailed, "", ""},
		{"edit what is not there", "file_edit", tool.Args{"path": "a.txt", "old": "three", "new": "3"}, tool.StatusFailed, "", ""},
		{"edit nothing", "file_edit", tool.Args{"path": "a.txt", "old": "", "new": "3"}, tool.StatusInvalid, "", "old"},
		{"delete", "file_delete", tool.Args{"path": "a.txt"}, tool.StatusDone, "", ""},
		{"delete what is not there", "file_delete", tool.Args{"path": "none"}, tool.StatusFailed, "", "no such file"},
		{"delete a full directory", "file_delete", tool.Args{"path": "sub"}, tool.StatusFailed, "", ""},
		{"delete all", "file_delete", tool.Args{"path": "sub", "recursive": true}, tool.StatusDone, `"deleted"`, ""},
		{"delete all with a secret", "file_delete", tool.Args{"path": "keys", "recursive": true}, tool.StatusDenied, "", "secrets"},
		{"delete in another root", "file_delete", tool.Args{"path": "a.txt", "root": "docs"}, tool.StatusDenied, "", ""},
		{"read in another root", "file_read", tool.Args{"path": "a.txt", "root": "docs"}, tool.StatusDenied, "", ""},
		{"read in the named root", "file_read", tool.Args{"path": "a.txt", "root": "workspace"}, tool.StatusDone, `"one two one"`, ""},
		{"no name of a root", "file_read", tool.Args{"path": "a.txt", "root": "a/b"}, tool.StatusInvalid, "", ""},
		{"list another root", "file_list", tool.Args{"root": "docs"}, tool.StatusDenied, "", ""},
		{"list all", "file_list", tool.Args{"recursive": true}, tool.StatusDone, `{"entries":[{"name":"a.txt","size":11,"type":"file"},{"name":"bin","size":2,"type":"file"},{"name":"keys","size":0,"type":"dir"},{"name":"keys/x","size":1,"type":"file"},{"name":"sub","size":0,"type":"dir"},{"name":"sub/c.txt","size":3,"type":"file"}],"has_more":false,"left_out":{"denied":2}}`, ""},
		{"list a page", "file_list", tool.Args{"path": "sub", "page": 2}, tool.StatusDone, `{"entries":[],"has_more":false}`, ""},
		{"list page nought", "file_list", tool.Args{"page": 0}, tool.StatusInvalid, "", "page"},
		{"search", "file_search", tool.Args{"pattern": "s?ee?"}, tool.StatusDone, `{"has_more":false,"left_out":{"denied":2,"not_text":1},"matches":[{"line":1,"path":"a.txt","text":"one two one"},{"line":1,"path":"sub/c.txt","text":"see"}]}`, ""},
		{"search literally", "file_search", tool.Args{"pattern": "s.e", "literal": true}, tool.StatusDone, `{"has_more":false,"left_out":{"denied":2,"not_text":1},"matches":[]}`, ""},
		{"search some", "file_search", tool.Args{"pattern": "e", "glob": "c.*", "path": "sub"}, tool.StatusDone, `{"has_more":false,"matches":[{"line":1,"path":"sub/c.txt","text":"see"}]}`, ""},
		{"search nonsense", "file_search", tool.Args{"pattern": "("}, tool.StatusInvalid, "", "pattern"},
		{"list a file", "file_list", tool.Args{"path": "a.txt"}, tool.StatusFailed, "", "is not a directory"},
		{"move", "file_move", tool.Args{"from": "a.txt", "to": "sub/a.txt"}, tool.StatusDone, `"moved"`, ""},
		{"move a directory", "file_move", tool.Args{"from": "sub", "to": "other"}, tool.StatusDone, `"moved"`, ""},
		{"move a secret", "file_move", tool.Args{"from": ".env", "to": "env"}, tool.StatusDenied, "", "secrets"},
		{"move a hidden secret", "file_move", tool.Args{"from": "keys", "to": "other"}, tool.StatusDenied, "", "secrets"},
		{"move onto something", "file_move", tool.Args{"from": "a.txt", "to": "bin"}, tool.StatusFailed, "", "exists"},
		{"move out", "file_move", tool.Args{"from": "a.txt", "to": "../x"}, tool.StatusInvalid, "", "to"},
		{"copy", "file_copy", tool.Args{"from": "a.txt", "to": "b.txt"}, tool.StatusDone, `"copied"`, ""},
		{"copy a directory", "file_copy", tool.Args{"from": "sub", "to": "other"}, tool.StatusDone, `"copied"`, ""},
		{"copy a secret", "file_copy", tool.Args{"from": "keys", "to": "other"}, tool.StatusDenied, "", "secrets"},
		{"make directories", "dir_create", tool.Args{"path": "x/y/z"}, tool.StatusDone, "", ""},
		{"make what is there", "dir_create", tool.Args{"path": "sub"}, tool.StatusDone, "", ""},
		{"make where a file is", "dir_create", tool.Args{"path": "a.txt/x"}, tool.StatusFailed, "", "exists"},
		{"make in git", "dir_create", tool.Args{"path": "x/.git/hooks"}, tool.StatusDenied, "", "history"},
		{"staging name", "file_write", tool.Args{"path": ".remit-stage-1", "content": ""}, tool.StatusInvalid, "", "reserved"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, tx := session(t)
			out, _ := tx.Invoke(context.Background(), tc.tool, tc.args)
			require.Equal(t, tc.want, out.Status, "%+v", out.Error)
			if tl, ok := byName()[tc.tool]; ok && tl.CanVerify() && out.Status == tool.StatusDone {
				require.EqualValues(t, "applied", out.Verdict.Presence)
			}
			if tc.output != "" {
				require.JSONEq(t, tc.output, string(out.Output))
			}
			if tc.why != "" {
				require.Contains(t, out.Error.Why, tc.why)
			}
		})
	}
}

func byName() map[string]tool.Tool {
	tools := map[string]tool.Tool{}
	for _, tl := range files.Tools() {
		tools[tl.Name()] = tl
	}
	return tools
}

// TestForm: what a model is shown is short, and its arguments are closed.
func TestForm(t *testing.T) {
	for name, tl := range byName() {
		s := tl.Spec()
		require.Less(t, len(s.Description), 200, name)
		require.Contains(t, string(s.Input), `"additionalProperties":false`, name)
		require.Equal(t, s.EffectClass == effect.Reversible, tl.CanVerify(), name)
	}
}

func TestModeAndContent(t *testing.T) {
	dir, tx := session(t)
	_, err := tx.Invoke(context.Background(), "file_write", tool.Args{"path": "run.sh", "content": "#!/bin/sh\n", "mode": "0750"})
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(dir, "run.sh"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o750), info.Mode())
	_, err = tx.Invoke(context.Background(), "file_edit", tool.Args{"path": "a.txt", "old": "one", "new": "1", "all": true})
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(dir, "a.txt"))
	require.NoError(t, err)
	require.Equal(t, "1 two 1", string(data))
}

// TestVerifyChecksTheFiles: each Verify is asked about a world in which the
// effect is there, and one in which it is not.
func TestVerifyChecksTheFiles(t *testing.T) {
	ctx := context.Background()
	tools := byName()
	for _, tc := range []struct {
		tool, input   string
		there, absent string // content of a.txt; "-" for no file
	}{
		{"file_write", `{"path":"a.txt","content":"new"}`, "new", "old"},
		{"file_write", `{"path":"a.txt","content":"new"}`, "new", "-"},
		{"file_delete", `{"path":"a.txt"}`, "-", "old"},
		{"file_move", `{"from":"b.txt","to":"a.txt"}`, "", "-"},
		{"file_copy", `{"from":"b.txt","to":"a.txt"}`, "", "-"},
		{"dir_create", `{"path":"a.txt"}`, "", "old"},
		{"dir_create", `{"path":"a.txt"}`, "", "-"},
	} {
		t.Run(tc.tool, func(t *testing.T) {
			for content, want := range map[string]effect.Presence{tc.there: effect.PresenceApplied, tc.absent: effect.PresenceAbsent} {
				if content == "" {
					continue // nothing but what was recorded could tell that it is there
				}
				dir := t.TempDir()
				if content != "-" {
					require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte(content), 0o600))
				}
				root, err := disk.OpenRoot(dir)
				require.NoError(t, err)
				world := handleaccess.FilesOf[handle.ChangeSet, handle.DetectedChanges, handle.FilePreImage]().View(func(string) (disk.Root, bool) { return root, true }, host.Real(), journal.Memory(), []string{"file://workspace/a.txt", "file://workspace/b.txt"}, nil)
				v, ok := tools[tc.tool].Verifier().Get()
				require.True(t, ok)
				got := verify.Run(ctx, v, verify.Subject{Phase: verify.Recovery, Input: json.RawMessage(tc.input), Resources: world})
				require.Equal(t, want, got.Presence(), "%s: %v", content, got.Findings())
				require.Equal(t, effect.PresenceUnknown, verify.Run(ctx, v, verify.Subject{Input: json.RawMessage(tc.input)}).Presence(), "no world")
				require.NoError(t, root.Close())
			}
		})
	}
}
