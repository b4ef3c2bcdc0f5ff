package approval

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// lines is a terminal at which a person types lines, and before each one
// something happens.
type lines struct {
	before []func()
	text   []string
}

func (l *lines) Read(b []byte) (int, error) {
	if len(l.text) == 0 {
		return 0, io.EOF
	}
	l.before[0]()
	n := copy(b, l.text[0]+"\n")
	l.before, l.text = l.before[1:], l.text[1:]
	return n, nil
}

// TestPromptAnswersWhatItShowed: if the file changes after the person saw the
// difference, y answers nothing, and the person sees the new difference.
func TestPromptAnswersWhatItShowed(t *testing.T) {
	dir := t.TempDir()
	open, err := disk.OpenRoot(dir)
	require.NoError(t, err)
	id, err := canon.Marshal(open.Identity())
	require.NoError(t, err)
	require.NoError(t, open.Close())
	root := record.Root{Name: "workspace", Path: dir, Identity: id}
	file := filepath.Join(dir, "a.txt")
	writes := func(text string) func() {
		return func() { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	}
	app := &cli.App{Env: cli.Env{Getenv: func(string) string { return "" }, Host: host.Real()}}
	tools, err := tool.NewRegistry(state.Tools(app)...)
	require.NoError(t, err)
	write, _ := tools.Get("file_write")
	ask := ctxperm.ApprovalRequest{Tool: "file_write", ToolDigest: write.Digest(), Input: []byte(`{"path":"a.txt","content":"new\n"}`)}
	nothing := func() {}
	for name, test := range map[string]struct {
		before   []func()
		text     []string
		differs  int
		approved bool
	}{
		"it stays":            {[]func(){writes("one\n"), nothing}, []string{"d", "y"}, 0, true},
		"it was not shown":    {[]func(){writes("one\n")}, []string{"y"}, 0, true},
		"it changes":          {[]func(){writes("one\n"), writes("two\n"), nothing}, []string{"d", "y", "y"}, 1, true},
		"it changes, and no":  {[]func(){writes("one\n"), writes("two\n"), nothing}, []string{"d", "y", "n"}, 1, false},
		"it changes twice":    {[]func(){writes("one\n"), writes("two\n"), writes("three\n"), nothing}, []string{"d", "y", "y", "y"}, 2, true},
		"it changes, and eof": {[]func(){writes("one\n"), writes("two\n")}, []string{"d", "y"}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			var tty strings.Builder
			p := &prompt{app: app, roots: []record.Root{root}, who: "me", tty: &tty, in: bufio.NewReader(&lines{test.before, test.text}), lock: host.NewLock(app.Host, "prompt"), hold: func() func() { return func() {} }}
			answer, err := p.Approve(t.Context(), ask)
			require.Equal(t, strings.Contains(name, "eof"), err != nil)
			require.Equal(t, test.approved, answer.Approved())
			require.Equal(t, test.differs, strings.Count(tty.String(), "nothing was answered"), tty.String())
			require.Equal(t, test.differs > 0, strings.Contains(tty.String(), "-two"), tty.String())
		})
	}
}
