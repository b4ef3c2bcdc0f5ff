package main

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/state"
)

// spoiled is a state folder that is not what it should be, and what every command
// says of it. STATE stands for the folder.
type spoiled struct {
	name  string
	spoil func(state string) error
	says  string
	fsck  string // what fsck says, where that is something else
}

var times = regexp.MustCompile(`[0-9-]{10} [0-9:.]{12} UTC`)

func spoiledStates() []spoiled {
	const copyFirst = "; copy the folder before anything else opens it; remit fsck --state STATE lists what is wrong"
	older := func(state string) error { // as a copy made earlier, or without its log
		d, err := sql.Open("sqlite", filepath.Join(state, "journal.db"))
		if err == nil {
			_, err = d.Exec("DELETE FROM batches WHERE key >= 5 << 24")
		}
		if err == nil {
			err = d.Close()
		}
		return err
	}
	db := func(state string) string { return filepath.Join(state, "journal.db") }
	header := func(at int64, n uint32) func(string) error {
		return func(state string) error {
			f, err := os.OpenFile(db(state), os.O_RDWR, 0)
			if err == nil {
				_, err = f.WriteAt(binary.BigEndian.AppendUint32(nil, n), at)
			}
			if err == nil {
				err = f.Close()
			}
			return err
		}
	}
	cut := func(size int64) func(string) error {
		return func(state string) error { return os.Truncate(db(state), size) }
	}
	instead := func(name string, make func(path string) error) func(string) error {
		return func(state string) error {
			if err := os.RemoveAll(filepath.Join(state, name)); err != nil {
				return err
			}
			return make(filepath.Join(state, name))
		}
	}
	file := func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("text ", 100)), 0o600) }
	folder := func(path string) error { return os.Mkdir(path, 0o700) }
	malformed := "journal is damaged: journal.db was cut or changed: database disk image is malformed (11)" + copyFirst
	all := []spoiled{
		{"no SQLite file", instead("journal.db", file), "journal is damaged: journal.db is not an SQLite file" + copyFirst, ""},
		{"a newer format", header(60, 99), "journal.db has format 99; this remit knows formats up to 5: use a newer one", ""},
		{"a format that was never released", header(60, 1), "journal.db has format 1, from before the first release: move the folder away and begin a new one", ""},
		{"another application", header(68, 7), "journal.db belongs to another application (id 0x7)", ""},
		{"cut to its header", cut(100), malformed, ""},
		{"cut to its first page", cut(4096), malformed, ""},
		{"emptied", cut(0), "journal is incomplete: journal.db is empty or missing, and journal.head says that 7 entries were promised by TIME" + "; " + backThere(), ""},
		{"without its database", func(state string) error { return os.Remove(db(state)) }, "journal is incomplete: journal.db is empty or missing, and journal.head says that 7 entries were promised by TIME" + "; " + backThere(), ""},
		{"an older database", older, "journal is incomplete: entries 5 to 7 are missing, 3 of 7, written after TIME and by TIME: journal.db-wal was cut, deleted or left out of a copy, or journal.db is older than journal.head" + "; " + backThere(), "problem"},
		{"without its head file", func(state string) error { return os.Remove(filepath.Join(state, "journal.head")) }, "journal is incomplete: journal.head is missing, as in a copy that left it out: nothing shows whether journal.db has all that was promised" + "; " + backThere(), "problem"},
		{"a cut head file", func(state string) error { return os.Truncate(filepath.Join(state, "journal.head"), 600) }, "journal is incomplete: journal.head is damaged: nothing shows whether journal.db has all that was promised" + "; " + backThere(), "problem"},
		{"a folder", instead("journal.db", folder), "journal.db is a folder, not a file", ""},
		{"a file for the folder of blobs", instead("blobs", file), "STATE/blobs is not a folder", "open STATE/blobs: not a directory"},
		{"a file for the folder of owners", instead("owners", file), "STATE/owners is not a folder", "open STATE/owners: not a directory"},
	}
	if runtime.GOOS != "windows" {
		all = append(all, spoiled{
			"a link", instead("journal.db", func(path string) error { return os.Symlink("elsewhere", path) }),
			"journal.db is a link or something else, not a file: name the folder where it is", "",
		})
	}
	if os.Getuid() > 0 { // root may all, and windows has no such modes
		all = append(all, spoiled{
			"no rights", func(state string) error { return os.Chmod(db(state), 0) },
			"journal: journal.db and the folder around it must be yours to read and write: unable to open database file (14)", "",
		})
	}
	return all
}

// TestSpoiledState: a journal that cannot be used is refused in words by every
// command, before anything is run or changed.
func TestSpoiledState(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("x", 70_000) // a blob with a file of its own
	for _, s := range spoiledStates() {
		t.Run(s.name, func(t *testing.T) {
			workspace, state := testPlace(t)
			script := filepath.Join(t.TempDir(), "script.jsonl")
			require.NoError(t, os.WriteFile(filepath.Join(workspace, "a.txt"), []byte(content), 0o600))
			require.NoError(t, os.WriteFile(script, []byte(`{"tool":"file_write","args":{"path":"a.txt","content":"new"}}`+"\n"), 0o600))
			at := []string{"--workspace", workspace, "--state", state}
			require.Zero(t, run(t.Context(), append([]string{"run", script}, at...), testEnv(nil, io.Discard, io.Discard)))
			require.NoError(t, s.spoil(state))
			require.NoError(t, os.WriteFile(filepath.Join(workspace, "a.txt"), []byte("as it is"), 0o600))
			before := sizes(t, state)
			for _, args := range [][]string{
				{"log"},
				{"show", "c_1"},
				{"diff", "c_1"},
				{"revert", "--last"},
				{"redo", "t_1"},
				{"recover"},
				{"prune"},
				{"approve", "c_1"},
				{"fsck"},
				{"run", script},
			} {
				var out, errs bytes.Buffer
				w := testEnv(nil, &out, &errs)
				w.Username = func() (string, error) { return "somebody", nil }
				code := run(t.Context(), append(args, at...), w)
				want := s.says
				if args[0] == "fsck" && s.fsck != "" {
					want = s.fsck
				}
				said := strings.ReplaceAll(errs.String(), state, "STATE")
				said = strings.ReplaceAll(strings.TrimSuffix(said, "\n"), "\n     fix   ", "; ")
				open := "open "
				if args[0] == "fsck" {
					open = ""
				}
				said = times.ReplaceAllString(said, "TIME")
				if args[0] == "fsck" && s.fsck == "problem" { // it lists it, and goes on
					require.Contains(t, times.ReplaceAllString(out.String(), "TIME"), strings.TrimSuffix(s.says, "; "+backThere()))
					require.Contains(t, said, "remit: the journal in STATE has ")
					continue
				}
				require.Equal(t, "remit: "+open+"journal in STATE: "+want, said, "%v", args)
				require.Equal(t, 1, code, "%v", args)
				require.True(t, args[0] == "fsck" || out.Len() == 0, "%v wrote %s", args, out.String())
			}
			require.Equal(t, before, sizes(t, state), "nothing was made of it")
			data, err := os.ReadFile(filepath.Join(workspace, "a.txt"))
			require.NoError(t, err)
			require.Equal(t, "as it is", string(data))
		})
	}
}

// sizes lists the files of a folder with their sizes, but for what SQLite needs
// beside a database to look at it.
func sizes(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && !strings.HasSuffix(path, "-shm") && !strings.HasSuffix(path, "-wal") {
			all[path] = info.Size()
		}
		return err
	}))
	return all
}

// backThere is the advice for a journal in STATE that lacks something.
func backThere() string {
	return state.RestoreHint(&state.Workspace{HintFlags: []string{"--state", "STATE"}})
}
