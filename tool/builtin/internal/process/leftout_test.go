package process_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// TestLeftOut: what of a program's work is not applied is said, to the model too, and the
// rest of it is applied and reverted.
func TestLeftOut(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		says         []string
		root         bool // what only the root user can do
	}{
		{"nothing", "echo x > a; chmod 600 a; mkdir d; chmod 700 src", nil, false},
		{"bits of the root", "chmod 700 .; echo x > a", []string{"workspace: the bits 0700 of the root itself, which keeps 0755"}, false},
		{"attributes of the root", "python3 -c 'import os; os.setxattr(\".\", \"user.k\", b\"v\")'; echo x > a", []string{"workspace: attributes of the root itself, which keeps those that it has"}, false},
		{"a pipe", "mkfifo p; echo x > a", []string{"workspace/p: a socket, a pipe or a device"}, false},
		{"the time of a link", "touch -h -d @1000000000 link; echo x > a", []string{"workspace/link: the time of the symbolic link, which keeps the one that it has"}, false},
		{"a link that leads elsewhere", "ln -sfn b link; touch -h -d @1000000000 link; ln -s a new; touch -h -d @1000000000 new", nil, false},
		{"setuid", "cp a s; chmod 4755 s", []string{"workspace/s: the setuid and setgid bits, which no program gives"}, false},
		{"setuid of a file that was there", "chmod 4755 a; touch b", []string{"workspace/a: the setuid and setgid bits, which no program gives"}, false},
		{"a file is not given away", "chown 1234:5678 a; echo x > a", nil, true},
		{"a file of somebody else", "echo x > theirs", nil, true},
		{"a moved file of somebody else", "mv theirs mine", nil, true},
		{"in a folder of somebody else", "echo x > ours/f", nil, true},
	} {
		for _, way := range writeModeCases(t) {
			t.Run(tt.name+way.name, func(t *testing.T) {
				if tt.root && os.Getuid() != 0 {
					t.Skip("only the root user's programs can give files away")
				}
				w := newProgramSetup(t, allowAll(), agent.Driver(way.driver))
				fill(t, w.dir)
				if tt.root {
					plainly(t, w.dir, "echo theirs > theirs; chown 4321:4321 theirs; chmod 666 theirs; mkdir ours; chown 4321:4321 ours; chmod 2777 ours")
				}
				before := listing(t, w.dir, true)
				txn, o := w.shell(t, tt.script)
				require.Equal(t, tool.StatusDone, o.Status)
				var out struct {
					LeftOut []string `json:"left_out"`
				}
				require.NoError(t, json.Unmarshal(o.Output, &out))
				require.Equal(t, tt.says, out.LeftOut)
				for _, line := range tt.says {
					require.Contains(t, o.Text, line)
				}
				info, err := os.Lstat(w.dir)
				require.NoError(t, err)
				require.Equal(t, os.FileMode(0o755), info.Mode().Perm())
				if _, err := os.Lstat(filepath.Join(w.dir, "s")); err == nil {
					require.NotContains(t, listing(t, w.dir, false), "104755")
				}
				_, err = w.s.Revert(t.Context(), txn, revert.Options{})
				require.NoError(t, err)
				equal(t, before, listing(t, w.dir, true), "undo")
			})
		}
	}
}
