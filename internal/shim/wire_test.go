//go:build linux && (amd64 || arm64)

package shim

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func someOrder() *StartRequest {
	return &StartRequest{
		Argv: []string{"sh", "-c", "x\xff\n"}, Env: []string{"A=1", ""}, Path: "/p", Dir: "/d", System: []string{"/usr"},
		Roots: []Root{
			{Dir: "/r", Upper: "/u", Dev: 1 << 60, Ino: 7, View: Overlay, Masked: []string{"a/b", "c"}, Attached: true},
			{Dir: "/s", View: Read},
		},
		Network: true, Loopback: true, Proxy: 3128, Namespaces: true, Scratch: "/tmp/x", Limits: Limits{1, 2, 3, 4, 5, 6}, Filter: []byte{0, 255, 3}, Plain: []byte{1}, Require: 2,
		Missing: []string{"a: b"}, Try: true, Without: []string{"x"},
	}
}

func someMessage() *Message {
	return &Message{
		Kind: Ended, Why: "why", Root: "/r", Alone: "why", Missing: []string{"m"}, Landlock: 7, Level: 2, Exit: Exit{Code: -1, Signal: 9, Left: 1000},
		Locked: []UnreadableEntry{{1, "n\xff", 0o7000}, {0, ".", 0}},
		Met:    []Restriction{{"link", "text\n"}, {"", ""}},
	}
}

// TestFrames checks that frames arrive with their descriptors. A truncated or
// oversized frame is refused as a whole.
func TestFrames(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	var order StartRequest
	require.NoError(t, Send(ends[0], someOrder()))
	fds, err := Receive(ends[1], &order)
	require.NoError(t, err)
	require.Empty(t, fds)
	require.Equal(t, someOrder(), &order)

	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = r.Close() }()
	require.NoError(t, Send(ends[1], someMessage(), int(w.Fd()), int(w.Fd())))
	require.NoError(t, w.Close())
	var message Message
	fds, err = Receive(ends[0], &message)
	require.NoError(t, err)
	require.Equal(t, someMessage(), &message)
	require.Len(t, fds, 2)
	for _, fd := range fds {
		_, err = unix.Write(fd, []byte("x"))
		require.NoError(t, err)
		require.NoError(t, unix.Close(fd))
	}

	require.NoError(t, Send(ends[0], &StartRequest{}))
	require.NoError(t, unix.Close(ends[0]))
	order = StartRequest{}
	_, err = Receive(ends[1], &order)
	require.NoError(t, err)
	_, err = Receive(ends[1], &order)
	require.ErrorIs(t, err, io.EOF)
	require.ErrorIs(t, Send(ends[1], &order), unix.EPIPE)
}

func TestTornFrames(t *testing.T) {
	for name, tt := range map[string]struct {
		sent string
		want error
	}{
		"half a length": {"\x00\x00", errTorn},
		"half a body":   {"\x00\x00\x00\x05ab", io.ErrUnexpectedEOF},
		"too large":     {"\xff\xff\xff\xff", errSize},
		"nonsense":      {"\x00\x00\x00\x02\xff\xff", errBody},
		"more":          {"\x00\x00\x00\x03\x00\x00\x00", errBody},
	} {
		t.Run(name, func(t *testing.T) {
			ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			require.NoError(t, err)
			_, err = unix.Write(ends[0], []byte(tt.sent))
			require.NoError(t, err)
			require.NoError(t, unix.Close(ends[0]))
			_, err = Receive(ends[1], &Message{})
			require.ErrorIs(t, err, tt.want)
			require.NoError(t, unix.Close(ends[1]))
		})
	}
	require.ErrorIs(t, Send(-1, &StartRequest{Dir: strings.Repeat("x", maxFrame)}), errSize)
	_, err := Receive(-1, &StartRequest{})
	require.ErrorIs(t, err, unix.EBADF)
}

func TestCutFrames(t *testing.T) {
	for _, f := range []interface {
		Frame
	}{someOrder(), someMessage()} {
		whole := f.Pack()
		for n := range whole {
			require.Error(t, f.Unpack(whole[:n]), "%T cut after %d of %d", f, n, len(whole))
		}
		require.Error(t, f.Unpack(append(whole, 0)))
		require.NoError(t, f.Unpack(whole))
	}
}

// FuzzOrder checks that a decoded request encodes to the same bytes. So a shim
// and its caller never decode one frame differently.
func FuzzOrder(f *testing.F) {
	f.Add(someOrder().Pack())
	f.Add((&StartRequest{}).Pack())
	f.Add(append((&StartRequest{}).Pack(), 0))
	f.Add([]byte("\x00\x00\x00\x00\x0000\x0000000\x9a0\x000\x000\x00")) // a flag that is 48
	f.Fuzz(func(t *testing.T, in []byte) {
		var o, again StartRequest
		if o.Unpack(in) != nil {
			return
		}
		require.Equal(t, in, o.Pack())
		require.NoError(t, again.Unpack(o.Pack()))
		require.Equal(t, o, again)
	})
}

// FuzzMessage is FuzzOrder for the shim's messages.
func FuzzMessage(f *testing.F) {
	f.Add(someMessage().Pack())
	f.Add((&Message{}).Pack())
	f.Add([]byte("0\x03000\x0200\x01\x01000000\x020\x020000\x010\xd4\x00")) // a number with a redundant byte
	f.Fuzz(func(t *testing.T, in []byte) {
		var m, again Message
		if m.Unpack(in) != nil {
			return
		}
		require.Equal(t, in, m.Pack())
		require.NoError(t, again.Unpack(m.Pack()))
		require.Equal(t, m, again)
	})
}

// TestShortcomings checks that an old Landlock is used, and is not sufficient.
// Best-effort libraries do not report that.
func TestShortcomings(t *testing.T) {
	require.ErrorContains(t, shortcoming(0), "none")
	for v := 1; v < enoughLandlock; v++ {
		require.ErrorContains(t, shortcoming(v), "from 6 on")
	}
	require.NoError(t, shortcoming(enoughLandlock))
	for v := 1; v <= 9; v++ {
		a, less := handled(v, false), handled(v-1, false)
		require.Equal(t, less.handledFS, less.handledFS&a.handledFS, "version %d handles less", v)
		require.Zero(t, handled(v, true).handledNet)
	}
	require.NotZero(t, handled(4, false).handledNet)
	require.NotZero(t, handled(6, true).scoped)
}

// TestLevel checks that a missing layer lowers the level, and that the level is
// none without namespaces and Landlock.
func TestLevel(t *testing.T) {
	s := &sandboxBuild{landlock: 7}
	s.Namespaces = true
	require.Equal(t, 2, s.level())
	s.lack("seccomp", unix.ENOSYS)
	require.Equal(t, []string{"seccomp: function not implemented"}, s.missing)
	require.Equal(t, 1, s.level())
	s.Namespaces = false
	require.Equal(t, 1, s.level())
	s.landlock = 0
	require.Equal(t, 0, s.level())
}

// TestProgram checks that only absolute folders of PATH are searched, for
// executable files.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run"), nil, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "text"), nil, 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	t.Chdir(dir)
	for _, tt := range []struct{ name, path, want string }{
		{"run", dir, dir + "/run"},
		{"./run", "", "./run"},
		{"run", "/nowhere:" + dir, dir + "/run"},
		{"run", ".", ""},
		{"run", "", ""},
		{"text", dir, ""},
		{"folder", dir, ""},
	} {
		s := &sandboxBuild{StartRequest: StartRequest{Argv: []string{tt.name}, Env: []string{"X=1", "PATH=" + tt.path}}}
		got, err := s.program()
		require.Equal(t, tt.want, got)
		require.Equal(t, tt.want == "", err != nil)
	}
}
