//go:build linux && (amd64 || arm64)

package shim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// These tests compare this package's own functions, which replace imports, with
// the standard library.

func TestNumbers(t *testing.T) {
	for _, n := range []uint64{0, 1, 0x7f, 0x80, 0x3fff, 0x4000, math.MaxUint32, math.MaxInt64, math.MaxUint64} {
		var p packer
		p.number(n)
		require.Equal(t, binary.AppendUvarint(nil, n), p.out)
		u := unpacker{in: p.out}
		require.Equal(t, n, u.number())
		require.NoError(t, u.end())
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		in := make([]byte, random.IntN(13))
		for i := range in {
			in[i] = byte(random.Uint32())
			if random.IntN(8) > 0 {
				in[i] |= 0x80 // more bytes follow
			}
		}
		want, size := binary.Uvarint(in)
		u := unpacker{in: in}
		got := u.number()
		if size <= 0 || !bytes.Equal(binary.AppendUvarint(nil, want), in[:size]) { // another encoding than that of this package
			require.True(t, u.torn, "%x", in)
			require.Zero(t, got, "%x", in)
			continue
		}
		require.False(t, u.torn, "%x", in)
		require.Equal(t, want, got, "%x", in)
		require.Equal(t, in[size:], u.in)
	}
}

// TestArguments checks that the arguments are those of the program.
func TestArguments(t *testing.T) {
	require.Equal(t, os.Args, arguments())
	require.Empty(t, calledAs(), "this program was given more than its name")
}

func TestTexts(t *testing.T) {
	for _, s := range []string{"", "/", "a", "a/", "/a", "a/b/c", "//", "ü/é"} {
		before, after, found := cut(s, '/')
		wantBefore, wantAfter, want := strings.Cut(s, "/")
		require.Equal(t, []any{wantBefore, wantAfter, want}, []any{before, after, found}, s)
	}
	for _, all := range [][]string{nil, {""}, {"a"}, {"a", "", "b"}} {
		require.Equal(t, strings.Join(all, "; "), joined(all, "; "))
	}
}

// TestFailure checks that the text equals that of fmt, and that the wrapped
// error is found.
func TestFailure(t *testing.T) {
	err := failedAt("sandbox: the roots", failedAt("/r", refusal{NoOverlay, "/r", syscall.ENOENT}))
	require.EqualError(t, err, fmt.Errorf("sandbox: %s: %w", "the roots", fmt.Errorf("%s: %w", "/r", syscall.ENOENT)).Error())
	var r refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, NoOverlay, r.kind)
	require.ErrorIs(t, failedAt("x", failedAt("y", syscall.ENOENT)), os.ErrNotExist)
	require.NotErrorIs(t, failedAt("x", syscall.ENOENT), syscall.EPERM)

	left := [2]capUserData{{0x1f, 0, 0xffffffff}, {1, 2, 10}}
	require.Equal(t, fmt.Sprintf("%x", [2]struct{ A, B, C uint32 }{{0x1f, 0, 0xffffffff}, {1, 2, 10}}), "["+left[0].String()+" "+left[1].String()+"]")
	require.EqualError(t, shortcoming(3), fmt.Sprintf("version %d; from %d on it bounds all that it should", 3, enoughLandlock))
}

// TestNames checks that a folder of any size is listed completely.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 1000 {
		name := strings.Repeat("n", i%200) + strconv.Itoa(i)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		want = append(want, name)
	}
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	require.NoError(t, err)
	got := namesIn(fd)
	require.NoError(t, syscall.Close(fd))
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
	require.Empty(t, namesIn(-1))
}

// TestParent checks that a process's parent is found after any process name.
func TestParent(t *testing.T) {
	link := filepath.Join(t.TempDir(), "a) S 1 (b) ")
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	text, err := os.ReadFile(sleep)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(link, text, 0o700))
	cmd := &exec.Cmd{Path: link, Args: []string{"sleep", "1000"}}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Equal(t, strconv.Itoa(os.Getpid()), parentOf(strconv.Itoa(cmd.Process.Pid)))
	require.Equal(t, strconv.Itoa(os.Getppid()), parentOf("self"))
	require.Empty(t, parentOf("0"))
}

// TestText checks that a file is read up to the bound, and that a missing file
// is an error.
func TestText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	for most, want := range map[int]string{4: "0123", 10: "0123456789", 99: "0123456789"} {
		got, err := readText(path, most)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	_, err := readText(path+"x", 4)
	require.True(t, errors.Is(err, syscall.ENOENT))
	_, err = readText(t.TempDir(), 4)
	require.ErrorIs(t, err, syscall.EISDIR)
}
