//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// daemonsEnv makes the test binary a program that leaves a number of daemons.
const daemonsEnv = "REMIT_TEST_DAEMONS"

// beDaemons forks children that each start a session, fork again and end. The
// remaining processes ignore all signals and wait forever, with this program's
// output open.
func beDaemons(count int, stay bool) int {
	runtime.LockOSThread()
	all := unix.Sigset_t{}
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &all, nil); err != nil {
		return 1
	}
	for range count {
		pid := daemon()
		if pid < 0 {
			return 1
		}
		if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
			return 1
		}
	}
	fmt.Println("daemons")
	if stay {
		_, _ = unix.Ppoll(nil, nil, nil)
	}
	return 0
}

// daemon creates one daemon. A forked child of a Go program may only make
// system calls.
//
//go:norace
func daemon() int {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return -1
	}
	if pid != 0 {
		return int(pid)
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	pid, _, errno = unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
	}
	if pid != 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	for {
		_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// daemons starts a program that leaves daemons, in a sandbox. The reader ends
// when none of them runs.
func daemons(t *testing.T, ctx context.Context, count int, stay string) (*Process, *os.File) {
	exe, err := os.Executable()
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	p, err := Start(ctx, "", Spec{
		Argv: []string{exe}, Env: []string{fmt.Sprint(daemonsEnv, "=", count, stay)}, System: append(System(), exe),
	}, Stdio{Out: w})
	_ = w.Close()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p, r
}

// TestDaemons checks that a thousand daemons do not outlive the program that
// left them, or a killed call. A process group would not contain them.
func TestDaemons(t *testing.T) {
	const count = 1000
	t.Run("when the program ends", func(t *testing.T) {
		p, r := daemons(t, context.Background(), count, "")
		exit, err := p.Wait()
		require.NoError(t, err)
		require.Zero(t, exit.Code)
		require.Equal(t, count, exit.Left)
		said, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "daemons\n", string(said))
	})
	t.Run("when the call is killed", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		p, r := daemons(t, ctx, count, "+")
		_, err := io.ReadFull(r, make([]byte, len("daemons\n")))
		require.NoError(t, err)
		cancel()
		_, err = p.Wait()
		require.Error(t, err)
		_, err = io.ReadAll(r)
		require.NoError(t, err)
	})
}
