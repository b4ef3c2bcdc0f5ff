package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// TestInvalid checks that the runtime rejects invalid arguments before it asks
// an approver. The message names the argument and the valid values.
func TestInvalid(t *testing.T) {
	const (
		leaves   = `the path leaves its root; valid is a relative path inside it, without ".."`
		root     = `"." is the root itself, which is neither read nor changed`
		noPath   = ` is no path: one is relative, clean and slash-separated, without .. and NUL, such as src/main.go`
		notClean = `the path is not clean: valid are names joined by single slashes, without "." and ".."`
		reserved = `".remit-stage-x": names that begin with .remit-stage- are reserved`
	)
	_, tx := session(t)
	for _, tc := range []struct{ tool, input, why string }{
		{"file_read", `{}`, `argument "path" is missing, want a string`},
		{"file_read", `{"path":""}`, `argument "path" is too short, want at least 1 character`},
		{"file_read", `{"path":3}`, `argument "path" is a number, want a string`},
		{"file_read", `{"path":"a","path":"b"}`, `the input: invalid JSON at "/path": this member name occurs more than once, want each name once`},
		{"file_read", `{"path":"a","Path":"b"}`, `argument "Path" differs only in case from "path", names are exact`},
		{"file_read", `{"path":"a","pth":"b"}`, `argument "pth" is not known, did you mean "path"? known: "limit", "offset", "path", "root"`},
		{"file_read", `{"path":"a","offset":-1}`, `argument "offset" is too small, want at least 0`},
		{"file_read", `{"path":"a","offset":1.5}`, `argument "offset" is a number with a fraction, want an integer`},
		{"file_read", `{"path":"a","limit":0}`, `argument "limit" is too small, want at least 1`},
		{"file_read", `{"path":"a","limit":33554433}`, `argument "limit" is too large, want at most 33554432`},
		{"file_read", `{"path":"/etc/passwd"}`, `argument "path": ` + leaves},
		{"file_read", `{"path":"a/../../b"}`, `argument "path": ` + leaves},
		{"file_read", `{"path":"."}`, `argument "path": ` + root},
		{"file_read", `{"path":".","root":"workspace"}`, `argument "path": ` + root},
		{"file_read", `{"path":"a/"}`, `argument "path": "a/"` + noPath},
		{"file_read", `{"path":"a//b","root":"workspace"}`, `argument "path": ` + notClean},
		{"file_read", `{"path":"a\u0000b"}`, `argument "path": "a\x00b"` + noPath},
		{"file_read", `{"path":"../x","root":"workspace"}`, `argument "path": ` + leaves},
		{"file_read", `{"path":"a.txt","root":"../x"}`, `argument "root" has a slash: valid is one name, not a path`},
		{"file_list", `{"path":".."}`, `argument "path": ` + leaves},
		{"file_list", `{"page":0}`, `argument "page" is too small, want at least 1`},
		{"file_list", `{"page":100001}`, `argument "page" is too large, want at most 100000`},
		{"file_list", `{"recursive":"yes"}`, `argument "recursive" is a string, want a boolean`},
		{"file_search", `{"pattern":""}`, `argument "pattern" is too short, want at least 1 character`},
		{"file_search", `{"pattern":"("}`, "argument \"pattern\" is no RE2 expression: error parsing regexp: missing closing ): `(`; literal finds plain text"},
		{"file_search", `{"pattern":"x","glob":"["}`, `argument "glob" is "[", a syntax error in pattern: valid are such as *.go and src/**/*.go`},
		{"file_search", `{"pattern":"x","path":"/"}`, `argument "path": ` + leaves},
		{"file_write", `{"path":"x"}`, `argument "content" is missing, want a string`},
		{"file_write", `{"path":"x","content":"","mode":"0200"}`, `argument "mode" does not match the pattern ^0?[4-7][0-7]{2}$`},
		{"file_write", `{"path":"x","content":"","mode":"4755"}`, `argument "mode" does not match the pattern ^0?[4-7][0-7]{2}$`},
		{"file_write", `{"path":".remit-stage-x","content":""}`, `argument "path": ` + reserved},
		{"file_write", `{"path":".remit-stage-x","content":"","root":"workspace"}`, `argument "path": ` + reserved},
		{"file_edit", `{"path":"a.txt","old":"","new":""}`, `argument "old" is too short, want at least 1 character`},
		{"file_move", `{"from":"a.txt","to":"a.txt"}`, `argument "to": "a.txt" is "a.txt" itself, or lies in it; valid is a free path outside it`},
		{"file_move", `{"from":"sub","to":"sub/x"}`, `argument "to": "sub/x" is "sub" itself, or lies in it; valid is a free path outside it`},
		{"file_copy", `{"from":"sub","to":"sub/x"}`, `argument "to": "sub/x" is "sub" itself, or lies in it; valid is a free path outside it`},
		{"file_copy", `{"from":"../a","to":"b"}`, `argument "from": ` + leaves},
		{"file_delete", `{"path":"."}`, `argument "path": ` + root},
		{"file_delete", `{"path":".","recursive":true}`, `argument "path": ` + root},
		{"dir_create", `{"path":"."}`, `argument "path": ` + root},
		{"dir_create", `{"path":"a/.."}`, `argument "path": "a/.."` + noPath},
	} {
		out, err := tx.Invoke(t.Context(), tc.tool, []byte(tc.input))
		require.ErrorIs(t, err, tool.ErrInvalid, "%s %s", tc.tool, tc.input)
		require.Equal(t, tc.why, strings.ReplaceAll(out.Error.Why, "\n", " "), "%s %s", tc.tool, tc.input)
		require.Nil(t, out.Decision, "nobody was asked")
	}
}

// TestVerifyOfBits checks that Verify recognizes a call that changes only the
// permission bits. It distinguishes this call from one without an effect, and
// from a later change by another writer.
func TestVerifyOfBits(t *testing.T) {
	const resource, input = "file://workspace/a.txt", `{"path":"a.txt","content":"same","mode":"0640"}`
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	root, err := disk.OpenRoot(dir)
	require.NoError(t, err)
	defer func() { _ = root.Close() }()
	world := handleaccess.FilesOf[handle.ChangeSet, handle.DetectedChanges, handle.FilePreImage]().View(func(string) (disk.Root, bool) { return root, true }, host.Real(), journal.Memory(), []string{resource}, nil)
	version := map[os.FileMode]string{}
	for _, bits := range []os.FileMode{0o600, 0o640, 0o644} {
		require.NoError(t, os.WriteFile(path, []byte("same"), 0o600))
		require.NoError(t, os.Chmod(path, bits))
		version[bits], err = world.Version(t.Context(), resource)
		require.NoError(t, err)
	}
	v, _ := byName()["file_write"].Verifier().Get()
	changes := []verify.Change{{Resource: resource, Kind: "write", Before: version[0o600], After: version[0o640]}}
	for bits, want := range map[os.FileMode]effect.Presence{0o600: effect.PresenceAbsent, 0o640: effect.PresenceApplied, 0o644: effect.PresencePartial} {
		require.NoError(t, os.Chmod(path, bits))
		got := verify.Run(t.Context(), v, verify.Subject{Phase: verify.AfterRevert, Input: []byte(input), Resources: world, Changes: changes})
		require.Equal(t, want, got.Presence(), "%o: %v", bits, got.Findings())
		got = verify.Run(t.Context(), v, verify.Subject{Phase: verify.AfterCall, Input: []byte(input), Resources: world})
		require.Equal(t, effect.PresenceApplied, got.Presence(), "nothing was changed: it had the content")
	}
}
