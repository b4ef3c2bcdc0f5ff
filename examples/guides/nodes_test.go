package guides_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/pgtest"
)

// TestSharedJournal runs the guide to nodes: two nodes share a journal, and only
// the right one reverts.
func TestSharedJournal(t *testing.T) {
	call, commands := take(t, "guides/nodes.md", "jsonl", 0), take(t, "guides/nodes.md", "sh", 0)
	rights := take(t, "guides/nodes.md", "sql", 0)
	location, refusal := take(t, "guides/nodes.md", "text", 0), take(t, "guides/nodes.md", "text", 1)
	shell(t)
	journal, agent := pgtest.Database(t)
	p := newPlace(t)
	here := strings.Replace(location, "postgres://remit@db.example/remit", "'"+journal+"'", 1)
	p.write("script.jsonl", call)
	out := p.sh(0, here+commands)
	require.Contains(t, out, "this one")
	require.Equal(t, "hello\n", p.content("one/a.txt"))
	var newest struct {
		Txn string `json:"txn"`
	}
	require.NoError(t, json.Unmarshal([]byte(p.sh(0, here+"remit log -n 1 --json --state one.st")), &newest))
	out = p.sh(2, here+"remit revert "+newest.Txn+" --state one.st 2>&1")
	for _, words := range []string{"remit: nothing was reverted", "the files belong to node n_", "run the command on that node, which remit nodes"} {
		require.Contains(t, refusal, words)
		require.Contains(t, out, words)
	}
	require.Equal(t, "hello\n", p.content("two/a.txt"))
	p.sh(0, here+"remit revert --state one.st") // the newest of this node
	require.NoFileExists(t, filepath.Join(p.dir, "one/a.txt"))
	require.Equal(t, "hello\n", p.content("two/a.txt"))
	p.sh(0, here+"remit revert "+newest.Txn+" --state two.st")
	require.NoFileExists(t, filepath.Join(p.dir, "two/a.txt"))
	p.sh(0, here+"remit fsck --state one.st")

	as := strings.Replace(location, "postgres://remit@db.example/remit", "'"+agent+"'", 1)
	p.sh(2, as+"mkdir three && remit run --workspace three --state three.st script.jsonl")
	pgtest.Exec(t, journal, rights)
	p.sh(0, as+"remit run --workspace three --state three.st script.jsonl && remit revert --state three.st && remit fsck --state three.st")
	require.NoFileExists(t, filepath.Join(p.dir, "three/a.txt"))
}
