package guides_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/pgtest"
)

// TestSharedJournal runs the guide to nodes: two nodes share a journal, and one
// lets the other one revert.
func TestSharedJournal(t *testing.T) {
	call, commands := take(t, "guides/nodes.md", "jsonl", 0), take(t, "guides/nodes.md", "sh", 0)
	rights := take(t, "guides/nodes.md", "sql", 0)
	asking, doing := take(t, "guides/nodes.md", "sh", 1), take(t, "guides/nodes.md", "sh", 2)
	location, waiting := take(t, "guides/nodes.md", "text", 0), take(t, "guides/nodes.md", "text", 1)
	shell(t)
	journal, agent := pgtest.Database(t)
	p := newPlace(t)
	here := strings.Replace(location, "postgres://remit@db.example/remit", "'"+journal+"'", 1)
	p.write("script.jsonl", call)
	out := p.sh(0, here+commands)
	require.Contains(t, out, "this one")
	require.Equal(t, "hello\n", p.content("one/a.txt"))
	asked := p.sh(0, here+asking)
	for _, words := range []string{"… the revert of t_", " waits for node n_", ": no process of it lives; a server, remit run or remit recover there does it", "show its report: remit revert t_", " --withdraw --state one.st"} {
		require.Contains(t, waiting, words)
		require.Contains(t, asked, words)
	}
	require.Contains(t, asked, "asked of node n_", "remit pending lists it")
	require.Equal(t, "hello\n", p.content("two/a.txt"))
	out = p.sh(0, here+strings.Split(asking, "\n")[0]+"\n"+doing)
	require.Equal(t, 2, strings.Count(out, "reverted: 1 of 1 change reverted"), out)
	require.NoFileExists(t, filepath.Join(p.dir, "two/a.txt"))
	require.Equal(t, "hello\n", p.content("one/a.txt"))
	p.sh(0, here+"remit revert --state one.st") // the newest of this node
	require.NoFileExists(t, filepath.Join(p.dir, "one/a.txt"))
	p.sh(0, here+"remit fsck --state one.st")

	as := strings.Replace(location, "postgres://remit@db.example/remit", "'"+agent+"'", 1)
	p.sh(2, as+"mkdir three && remit run --workspace three --state three.st script.jsonl")
	pgtest.Exec(t, journal, rights)
	p.sh(0, as+"remit run --workspace three --state three.st script.jsonl && remit revert --state three.st && remit fsck --state three.st")
	require.NoFileExists(t, filepath.Join(p.dir, "three/a.txt"))
}
