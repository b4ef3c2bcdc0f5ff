//go:build unix

package approval

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// warned collects the warnings of a notifier.
type warned struct {
	mu    sync.Mutex
	texts []string
}

func (w *warned) warn(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func noticesFor(t *testing.T) *Notices {
	tools, err := tool.NewRegistry(cli.Env{}.BuiltinTools()...)
	require.NoError(t, err)
	same := func(call string) string { return "remit x " + call }
	return &Notices{Tools: func() tool.Registry { return tools }, look: same, approve: same, state: t.TempDir()}
}

// TestNotify: the program gets the facts of a call in the environment and on
// standard input. No byte of the call becomes a command.
func TestNotify(t *testing.T) {
	dir := t.TempDir()
	var w warned
	n := newNotifier(`cd "$DIR"; cat > stdin; env | grep ^REMIT_ | sort > env; echo $REMIT_SUMMARY $REMIT_TOOL >/dev/null; eval true`, append(os.Environ(), "DIR="+dir), w.warn)
	evil := "$(touch pwn)`touch pwn`;touch pwn\n'\"; touch pwn #\x1b[2J\x00\u202e"
	input, err := json.Marshal(map[string]string{"path": evil, "content": strings.Repeat(evil, 1000)})
	require.NoError(t, err)
	n.enqueue(noticesFor(t), ctxperm.ApprovalRequest{
		Call: "c_1", Txn: "t_1", Session: "s_1", Tool: "file_write" + evil, Principal: perm.Principal{ID: "agent" + evil}, Input: input,
		Reasons: []perm.Reason{{Text: evil}}, Accesses: []perm.ResourceAccess{{Action: perm.Write, Resource: "file://workspace/" + evil}}, Expires: time.Unix(1e9, 0),
	})
	require.NoError(t, n.Close())
	require.NoError(t, n.Close())
	require.Empty(t, w.texts)
	require.NoFileExists(t, filepath.Join(dir, "pwn"))
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	require.NoError(t, err)
	for line := range strings.Lines(string(env)) {
		require.Regexp(t, `^REMIT_[A-Z]+=`, line, "no value ends its line")
		require.Equal(t, strings.TrimSuffix(line, "\n"), cli.Printable(strings.TrimSuffix(line, "\n")))
		require.LessOrEqual(t, len(line), 5<<10)
	}
	require.Contains(t, string(env), "REMIT_CALL=c_1\n")
	require.Contains(t, string(env), "REMIT_EXPIRES=2001-09-09T01:46:40Z\n")
	text, err := os.ReadFile(filepath.Join(dir, "stdin"))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "\n"))
	var said notified
	require.NoError(t, json.Unmarshal(text, &said))
	require.Equal(t, "remit x c_1", said.Approve)
	require.NotContains(t, string(text), "\x1b")

	n = newNotifier("true", nil, w.warn)
	require.NoError(t, n.Close())
	n.enqueue(noticesFor(t), ctxperm.ApprovalRequest{Call: "late"}) // nothing happens
	require.Nil(t, newNotifier("", nil, w.warn))
}

// TestNotifyInTheWay: a program that fails, hangs or falls behind causes a
// warning, and stops no call.
func TestNotifyInTheWay(t *testing.T) {
	var w warned
	n := newNotifier("echo no >&2; exit 3", os.Environ(), w.warn)
	n.enqueue(noticesFor(t), ctxperm.ApprovalRequest{Call: "c_1", Preview: "x"})
	require.NoError(t, n.Close())
	require.Len(t, w.texts, 1)
	require.Contains(t, w.texts[0], "exit status 3: no")

	w.texts = nil
	const hangs = "sleep 100000 & sleep 100000"
	n = newNotifier(hangs, os.Environ(), w.warn)
	n.timeout = 50 * time.Millisecond
	n.enqueue(noticesFor(t), ctxperm.ApprovalRequest{Call: "c_1"})
	require.NoError(t, n.Close())
	require.Equal(t, []string{"--notify: " + hangs + " did not end within 50ms, and was ended"}, w.texts)

	w.texts = nil
	n = newNotifier(hangs, os.Environ(), w.warn)
	n.timeout = time.Hour
	at := noticesFor(t)
	for range maxNotifyQueue + 5 {
		n.enqueue(at, ctxperm.ApprovalRequest{Call: "c_1"})
	}
	n.stop()
	require.NoError(t, n.Close())
	require.Contains(t, strings.Join(w.texts, "\n"), "not told of call c_1: the program is behind by 64 calls")
}
