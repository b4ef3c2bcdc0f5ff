package treecheck_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/treecheck"
)

// tool skips the test if a program is not installed or rejects an option.
func tool(t *testing.T, name string, try ...string) {
	t.Helper()
	if out, err := exec.Command(name, try...).CombinedOutput(); err != nil {
		t.Skipf("%s %s does not work here: %v %s", name, strings.Join(try, " "), err, out)
	}
}

func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	return string(out)
}

var letters = map[treecheck.Kind]string{
	treecheck.Regular: "f", treecheck.Directory: "d", treecheck.Symlink: "l", treecheck.FIFO: "p",
	treecheck.Socket: "s", treecheck.CharDevice: "c", treecheck.BlockDevice: "b",
}

// TestCaptureAgreesWithFind compares a description with what GNU find prints.
func TestCaptureAgreesWithFind(t *testing.T) {
	tool(t, "find", "/dev/null", "-printf", "%T@")
	dir := sample(t, abilities(t))
	require.NoError(t, os.Mkdir("d/names", 0o2711))
	for _, name := range []string{"\xff\x01", "a\nb", strings.Repeat("n", 255), " ", "-rf", "*"} {
		write(t, "d/names/"+name, name)
	}
	setTime(t, "link", someTime)
	var want, got []string
	for _, e := range capture(t, dir).Entries {
		links := uint64(1)
		if e.Links != nil {
			links = e.Links.Count
		}
		line := fmt.Sprintf("%s %s %o %d %d %s", e.Path, letters[e.Type], e.Mode, e.UID, e.GID, e.Mtime)
		if e.Type != treecheck.Directory {
			line += fmt.Sprintf(" %d %s", links, e.Target)
		}
		if e.Type == treecheck.Regular {
			line += fmt.Sprintf(" %d", e.Size)
		}
		got = append(got, line)
	}
	for _, part := range [][]string{
		{"-type", "d", "-printf", `%p %y %m %U %G \0%T@\0\0`},
		{"-type", "f", "-printf", `%p %y %m %U %G \0%T@\0 %n %l %s\0`},
		{"!", "-type", "d", "!", "-type", "f", "-printf", `%p %y %m %U %G \0%T@\0 %n %l\0`},
	} {
		fields := strings.Split(output(t, dir, "find", append([]string{"."}, part...)...), "\x00")
		for ; len(fields) > 3; fields = fields[3:] {
			seconds, fraction, _ := strings.Cut(fields[1], ".") // find prints ten digits of nanoseconds
			want = append(want, strings.TrimPrefix(fields[0], "./")+seconds+"."+fraction[:9]+fields[2])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
}

// TestCaptureAgreesWithGetfattr compares all attributes with what getfattr prints.
func TestCaptureAgreesWithGetfattr(t *testing.T) {
	tool(t, "getfattr", "--version")
	dir := sample(t, abilities(t))
	var got []string
	for _, e := range capture(t, dir).Entries {
		for _, x := range e.Xattrs {
			got = append(got, fmt.Sprintf("%s %s=0x%x", e.Path, x.Name, x.Value))
		}
	}
	var want []string
	file := ""
	for line := range strings.SplitSeq(output(t, dir, "getfattr", "-Rhd", "-m", "-", "-e", "hex", "."), "\n") {
		if name, ok := strings.CutPrefix(line, "# file: "); ok {
			file = name
		} else if line != "" {
			want = append(want, file+" "+line)
		}
	}
	require.ElementsMatch(t, want, got)
}

// TestCompareAgreesWithTar requires that a tree and its copy by tar are equal.
func TestCompareAgreesWithTar(t *testing.T) {
	can := abilities(t)
	options := []string{"--format=posix", "--sparse", "--numeric-owner"}
	tool(t, "tar", append(options, "-cf", "/dev/null", "/dev/null")...)
	if can.xattrs || can.acls {
		options = append(options, "--acls", "--xattrs", "--xattrs-include=*")
		tool(t, "tar", append(options, "-cf", "/dev/null", "/dev/null")...)
	}
	dir := sample(t, can)
	require.NoError(t, os.Remove("sock")) // tar keeps no sockets
	before := capture(t, dir)
	archive, to := filepath.Join(t.TempDir(), "a.tar"), t.TempDir()
	output(t, dir, "tar", append(options, "-cf", archive, ".")...)
	output(t, to, "tar", append(options, "-xpf", archive)...)
	require.Empty(t, treecheck.Compare(before, capture(t, to)))

	require.NoError(t, os.Remove(filepath.Join(to, "d/e/b2")))
	require.NoError(t, os.WriteFile(filepath.Join(to, "a"), []byte("other"), 0))
	require.NotEmpty(t, treecheck.Compare(before, capture(t, to)))
}

// TestCompareAgreesWithRsync makes random changes in a copy, and requires that
// Compare finds a difference exactly if rsync does.
func TestCompareAgreesWithRsync(t *testing.T) {
	tool(t, "rsync", "-n", "-aHAXci", "--delete", "/dev/null", "/dev/null")
	can := abilities(t)
	can.holes, can.allocates = false, false // rsync does not compare holes
	dir := sample(t, can)
	before := capture(t, dir)
	parent := filepath.Dir(dir)
	output(t, parent, "rsync", "-aHAXS", "--modify-window=-1", dir+"/", "copy/")
	compare := func() (byRsync string, found []treecheck.Difference) {
		byRsync = output(t, parent, "rsync", "-n", "-aHAXci", "--delete", "--modify-window=-1", dir+"/", "copy/")
		return byRsync, slices.DeleteFunc(treecheck.Compare(before, capture(t, "../copy")), func(d treecheck.Difference) bool {
			return d.Field == treecheck.Sparse
		})
	}
	byRsync, found := compare()
	require.Empty(t, byRsync)
	require.Empty(t, found)
	for _, tt := range append(metadataCases(can), contentCases(can)...) {
		if !tt.can || tt.want[0].Field == treecheck.Sparse || strings.Contains(tt.name, "outside") {
			continue // rsync neither compares holes nor knows names outside of the tree
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(filepath.Join(parent, "copy"))
			output(t, parent, "rsync", "-aHAXcS", "--delete", "--modify-window=-1", dir+"/", "copy/")
			restore := times(t, tt.touch...)
			require.NoError(t, tt.change())
			restore()
			byRsync, found := compare()
			require.NotEmpty(t, byRsync)
			require.NotEmpty(t, found)
		})
	}
}

// TestDigestCoversEachByte compares digests with an implementation that reads
// the whole file, for files with random data and holes.
func TestDigestCoversEachByte(t *testing.T) {
	const block = 64 << 10
	r := rand.New(rand.NewPCG(1, 17))
	dir := t.TempDir()
	for n := range 60 {
		path := filepath.Join(dir, "f")
		file, err := os.Create(path)
		require.NoError(t, err)
		for range r.IntN(6) {
			b := make([]byte, r.IntN(3*block))
			if r.IntN(3) > 0 {
				for i := range b {
					b[i] = byte(r.Uint32())
				}
			}
			_, err := file.WriteAt(b, int64(r.IntN(20*block)))
			require.NoError(t, err)
		}
		if n%3 == 0 {
			require.NoError(t, file.Truncate(int64(r.IntN(20*block))))
		}
		require.NoError(t, file.Close())
		all, err := os.ReadFile(path)
		require.NoError(t, err)

		h := sha256.New()
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(all))))
		for at := 0; at < len(all); at += block {
			part := all[at:min(at+block, len(all))]
			if len(bytes.Trim(part, "\x00")) > 0 {
				h.Write(binary.LittleEndian.AppendUint64(nil, uint64(at)))
				h.Write(part)
			}
		}
		sparse := capture(t, dir).Entries[1]
		require.Equal(t, treecheck.Digest(h.Sum(nil)), sparse.Digest)
		require.LessOrEqual(t, sparse.Data, sparse.Size)

		require.NoError(t, os.WriteFile(path, all, 0o600)) // without holes
		full := capture(t, dir).Entries[1]
		require.Equal(t, sparse.Digest, full.Digest)
		require.GreaterOrEqual(t, full.Data, sparse.Data)
	}
}
