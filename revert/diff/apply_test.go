package diff_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/diff"
)

// side is a file before or after: nothing, a link, or content with mode bits.
type side struct{ mode, content, link string }

func (s side) resourceVersion() diff.ResourceVersion {
	switch {
	case s.link != "":
		return diff.ResourceVersion{Type: "link", Target: s.link}
	case s.mode == "":
		return diff.ResourceVersion{}
	}
	return diff.ResourceVersion{Type: "file", Mode: s.mode, Digest: string(canon.SumBytes([]byte(s.content)))}.From(
		func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s.content)), nil })
}

func (s side) put(t *testing.T, path string) {
	t.Helper()
	switch {
	case s.link != "":
		require.NoError(t, os.Symlink(s.link, path))
	case s.mode != "":
		require.NoError(t, os.WriteFile(path, []byte(s.content), 0o600))
		require.NoError(t, os.Chmod(path, map[string]os.FileMode{"0644": 0o644, "0755": 0o755, "0600": 0o600}[s.mode]))
	}
}

func (s side) is(t *testing.T, path string) {
	t.Helper()
	switch {
	case s.link != "":
		to, err := os.Readlink(path)
		require.NoError(t, err)
		require.Equal(t, s.link, to)
	case s.mode == "":
		require.NoFileExists(t, path)
	default:
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, s.content, string(got))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, s.mode == "0755", info.Mode().Perm()&0o100 != 0)
	}
}

// TestGitAppliesThePatch checks that git applies the patch of each sort of change
// in both directions. GNU patch also applies it if it is all text.
func TestGitAppliesThePatch(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	big := make([]byte, 5000)
	for i := range big {
		big[i] = byte(i * i >> 3)
	}
	text, none := side{"0644", "a\nb\nc\n", ""}, side{}
	names := []string{"x", "a b", "tab\tand \"quotes\"", "line\nend", "ünï", "\xff\xfe", "d/e f/g", " lead", "-dash"}
	for what, tt := range map[string][2]side{
		"text":                {text, {"0644", "a\nB\nc\n", ""}},
		"no newline":          {text, {"0644", "a\nb\nc", ""}},
		"new":                 {none, text},
		"deleted":             {text, none},
		"new and empty":       {none, {"0644", "", ""}},
		"empty deleted":       {{"0644", "", ""}, none},
		"bits":                {text, {"0755", "a\nb\nc\n", ""}},
		"bits and text":       {text, {"0755", "a\n", ""}},
		"private":             {none, {"0600", "a\n", ""}},
		"link":                {none, {"", "", "to there"}},
		"link leads on":       {{"", "", "v1"}, {"", "", "v2"}},
		"link goes":           {{"", "", "v1"}, none},
		"file to link":        {text, {"", "", "v1"}},
		"binary":              {{"0644", "a\x00b", ""}, {"0644", string(big), ""}},
		"binary new":          {none, {"0755", string(big[:53]), ""}},
		"binary gone":         {{"0644", string(big[:27]), ""}, none},
		"text to binary":      {text, {"0644", "\x00", ""}},
		"binary to empty":     {{"0644", "\xff", ""}, {"0644", "", ""}},
		"carriage returns":    {{"0644", "a\r\nb\r\n", ""}, {"0644", "a\r\nB\r\n", ""}},
		"binary and its bits": {{"0644", "\x00", ""}, {"0755", "\x01", ""}},
	} {
		t.Run(what, func(t *testing.T) {
			for _, name := range names {
				d := diff.Delta{Resource: name, Before: tt[0].resourceVersion(), After: tt[1].resourceVersion()}
				made, err := d.Text(t.Context(), name)
				require.NoError(t, err)
				patch := made.Patch + "dir d created, mode 0755\ntransaction t_1, committed: 1 change, 1 line added, 1 line removed\n"
				dir := t.TempDir()
				path := filepath.Join(dir, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				tt[0].put(t, path)
				apply := func(argv ...string) {
					cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
					cmd.Dir, cmd.Stdin = dir, strings.NewReader(patch)
					cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
					out, err := cmd.CombinedOutput()
					require.NoError(t, err, "%q %q: %s\n%s", argv, name, out, patch)
				}
				tool, err := exec.LookPath("patch")
				same := tt[0] == none || tt[1] == none || (tt[0].link == "") == (tt[1].link == "") // a dry run does not remember that the file was deleted
				if err == nil && same && !made.Binary && gnu(tool) {
					apply(tool, "-p1", "--dry-run", "--force")
				}
				apply(git, "apply", "--check")
				apply(git, "apply")
				tt[1].is(t, path)
				apply(git, "apply", "--reverse")
				tt[0].is(t, path)
			}
		})
	}
}

// gnu reports whether a program is GNU patch, which supports git headers.
func gnu(tool string) bool {
	out, err := exec.Command(tool, "--version").Output()
	return err == nil && bytes.Contains(out, []byte("GNU patch"))
}
