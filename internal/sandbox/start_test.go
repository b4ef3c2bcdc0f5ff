//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/remit-dev/remit/internal/shim"
)

func TestLevels(t *testing.T) {
	for _, l := range []Level{None, Partial, Strict} {
		got, err := ParseLevel(l.String())
		require.NoError(t, err)
		require.Equal(t, l, got)
	}
	_, err := ParseLevel("Strict")
	require.ErrorContains(t, err, "none, partial and strict")
	require.Less(t, None, Partial)
	require.Less(t, Partial, Strict)
}

// TestSpecs checks that an invalid specification is refused with a reason.
func TestSpecs(t *testing.T) {
	root := func(r Root) Spec { return Spec{Argv: []string{"true"}, Roots: []Root{r}} }
	for want, spec := range map[string]Spec{
		"working folder":              {Argv: []string{"true"}, Dir: "here"},
		"holds a NUL":                 {Argv: []string{"true"}, Env: []string{"A=\x00"}},
		"at most 64":                  {Argv: []string{"true"}, Roots: make([]Root, 65)},
		"absolute clean path below /": root(Root{Dir: "/a/../b", View: Read}),
		"there are read, overlay":     root(Root{Dir: "/a", View: "write"}),
		"the upper folder":            root(Root{Dir: "/a", View: Overlay, Upper: "up"}),
		"nothing in it can be masked": root(Root{Dir: "/a", View: Direct, Masked: []string{"b"}}),
		"not a clean name below":      root(Root{Dir: "/a", View: Read, Masked: []string{"../b"}}),
		"the masked name \".\"":       root(Root{Dir: "/a", View: Read, Masked: []string{"."}}),
		"the masked name \"b//c\"":    root(Root{Dir: "/a", View: Read, Masked: []string{"b//c"}}),
		"lie in one another":          {Argv: []string{"true"}, Roots: []Root{{Dir: "/a/b", View: Read}, {Dir: "/a", View: Read}}},
	} {
		_, err := Start(context.Background(), "", spec, Stdio{})
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, int64(1<<30), Limits{}.withDefaults().Scratch)
	require.Equal(t, Limits{Processes: 1, Files: 2, FileSize: 3, Data: 4, Scratch: 5, CPU: 6}, Limits{Processes: 1, Files: 2, FileSize: 3, Data: 4, Scratch: 5, CPU: 6}.withDefaults())
}

// TestNoShim checks that a program without a shim has no sandbox.
func TestNoShim(t *testing.T) {
	_, err := Start(context.Background(), "/nowhere", Spec{Argv: []string{"true"}}, Stdio{})
	require.ErrorIs(t, err, ErrNoSandbox)
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("gone")
	cancel(gone)
	_, err = Start(ctx, "", Spec{Argv: []string{"true"}}, Stdio{})
	require.ErrorIs(t, err, gone)
}

// TestRefused checks which errors mean that namespaces are not available, and
// which have other causes.
func TestRefused(t *testing.T) {
	for _, err := range []error{unix.EPERM, unix.ENOSPC, unix.EINVAL, unix.ENOSYS, unix.EUSERS} {
		require.True(t, isRefused(&os.PathError{Op: "fork/exec", Err: err}))
		require.ErrorIs(t, refusal(err), err)
	}
	require.ErrorContains(t, refusal(unix.ENOSPC), "user.max_user_namespaces")
	for _, err := range []error{unix.ENOENT, unix.EACCES, unix.ENOMEM, unix.EAGAIN} {
		require.False(t, isRefused(err))
	}
}

// TestWithLess runs a program as without namespaces, in this process.
// TestWithoutNamespaces does so where they are really not available.
func TestWithLess(t *testing.T) {
	needStrict(t)
	root := newRoot(t)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	spec := Spec{
		Argv: shell("printf new > a; printf $TMPDIR"), Dir: root, Env: []string{"PATH=/usr/bin:/bin"},
		Roots: []Root{{Dir: root, View: Direct}}, Require: Partial, Limits: Limits{Memory: 1 << 30},
	}
	p, err := start(context.Background(), "/proc/self/exe", spec, Stdio{Out: w}, "namespaces: for a test")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	exit, err := p.Wait()
	require.NoError(t, err)
	require.Zero(t, exit.Code)
	require.Contains(t, string(out), "remit-sandbox-")
	require.Equal(t, Partial, p.Reached().Level)
	require.Contains(t, p.Reached().Missing, "namespaces: for a test")
	require.NoError(t, p.Close())
	require.NoDirExists(t, string(out))
	data, err := os.ReadFile(filepath.Join(root, "a"))
	require.NoError(t, err)
	require.Equal(t, "new", string(data))

	spec.Argv, spec.Env = shell("sleep 1000"), append(spec.Env, "TMPDIR="+root)
	p, err = start(context.Background(), "/proc/self/exe", spec, Stdio{}, "namespaces: for a test")
	require.NoError(t, err)
	p.Kill()
	_, err = p.Wait()
	require.Error(t, err)
	require.NoError(t, p.Close())
}

// TestFirstMessage checks that the caller receives the shim's result.
func TestFirstMessage(t *testing.T) {
	p := &Process{}
	spec := Spec{Require: Strict}
	require.ErrorIs(t, p.receive(spec, shim.Message{Kind: shim.TooLow, Why: "x"}), ErrLevel)
	var overlay NoOverlayError
	require.ErrorAs(t, p.receive(spec, shim.Message{Kind: shim.NoOverlay, Root: "/r", Why: "x"}), &overlay)
	require.ErrorContains(t, overlay, "the root /r cannot be seen through an overlay: x")
	var none namespaceError
	require.ErrorAs(t, p.receive(spec, shim.Message{Kind: shim.NoNamespaces, Why: "x"}), &none)
	require.EqualError(t, p.receive(spec, shim.Message{Kind: shim.Failed, Why: "x"}), "x")
	require.Error(t, p.receive(spec, shim.Message{Kind: shim.Ended}))
}

func TestIdentity(t *testing.T) {
	file := filepath.Join(t.TempDir(), "map")
	for text, want := range map[string][]syscall.SysProcIDMap{
		"":                            nil,
		"0 0 4294967295\n":            {{ContainerID: 0, HostID: 0, Size: 4294967295}},
		"0 1000 1\n 1 100000 65536\n": {{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: 1, HostID: 1, Size: 65536}},
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		got, err := identity(file)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"1 2", "a 0 1", "0 0 x"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := identity(file)
		require.Error(t, err)
	}
	_, err := identity(file + "-none")
	require.Error(t, err)
	require.True(t, has([]syscall.SysProcIDMap{{ContainerID: 5, Size: 2}}, 6))
	require.False(t, has([]syscall.SysProcIDMap{{ContainerID: 5, Size: 2}}, 7))
}

// TestUnknownRoot checks that only a root with an overlay has changes.
func TestUnknownRoot(t *testing.T) {
	root := newRoot(t)
	needStrict(t)
	p, _ := runIn(t, root, "printf x > n; chmod u+s,+t n; ln n m")
	_, err := p.Changes(root + "/d")
	require.ErrorContains(t, err, "not a root")
	_, err = p.Open(root+"/d", "x")
	require.ErrorContains(t, err, "not a root")
	changes, err := p.Changes(root)
	require.NoError(t, err)
	require.Len(t, changes, 3)
	require.NotZero(t, changes[2].Mode&os.ModeSetuid)
	require.Equal(t, uint64(2), changes[1].Links)
	require.Equal(t, changes[1].Ino, changes[2].Ino)
}

// TestLongAttribute checks an attribute that is longer than the first buffer.
func TestLongAttribute(t *testing.T) {
	long := strings.Repeat("x", 3000)
	got, err := sized(func(buf []byte) (int, error) {
		if len(buf) < len(long) {
			return 0, unix.ERANGE
		}
		return copy(buf, long), nil
	})
	require.NoError(t, err)
	require.Equal(t, long, string(got))
	_, err = sized(func([]byte) (int, error) { return -1, unix.EIO })
	require.ErrorIs(t, err, unix.EIO)
}

// TestNow checks that earlier changes have an earlier stamp, and later ones do
// not.
func TestNow(t *testing.T) {
	dir := t.TempDir()
	require.True(t, Lasting(dir))
	require.False(t, Lasting(dir+"/none"))
	stamp := func(name string) int64 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		var is unix.Stat_t
		require.NoError(t, unix.Stat(filepath.Join(dir, name), &is))
		return is.Ctim.Nano()
	}
	before := stamp("before")
	now, err := Now()
	require.NoError(t, err)
	require.Less(t, before, now.UnixNano())
	require.GreaterOrEqual(t, stamp("after"), now.UnixNano())
}

// TestForeignFailures checks that unreadable names are skipped, except the
// folder itself.
func TestForeignFailures(t *testing.T) {
	root := newRoot(t)
	require.NoError(t, os.Chmod(filepath.Join(root, "d"), 0))
	t.Cleanup(func() { require.NoError(t, os.Chmod(filepath.Join(root, "d"), 0o700)) })
	name, err := Foreign(context.Background(), root)
	require.NoError(t, err)
	require.Empty(t, name)
	_, err = Probe(context.Background(), "", root+"/none", "")
	require.ErrorIs(t, err, os.ErrNotExist)
}
